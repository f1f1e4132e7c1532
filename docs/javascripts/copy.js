// A copy of a console block is its commands, without prompts and without what they print.
document.addEventListener(
  "click",
  (event) => {
    const button = event.target.closest(".md-clipboard, .md-code__button[data-md-type='copy']");
    const block = button && button.closest(".language-console");
    if (!block || !navigator.clipboard) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const lines = block.querySelector("code").textContent.split("\n");
    const commands = lines.filter((line) => line.startsWith("$ ")).map((line) => line.slice(2));
    navigator.clipboard.writeText(`${commands.join("\n")}\n`);
    button.title = "Copied";
  },
  true,
);
