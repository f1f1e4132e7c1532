// Names that the theme does not give to its search, its menus and its buttons, and tables that scroll by the keyboard too.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  const name = () => {
    const used = new Set();
    for (const nav of document.querySelectorAll("nav")) {
      const named = nav.getAttribute("aria-label") ?? document.getElementById(nav.getAttribute("aria-labelledby"))?.textContent;
      const label = (named ?? "Menu").trim().replace(/ \(\d+\)$/, "");
      let unique = label;
      for (let number = 2; used.has(unique); number += 1) unique = `${label} (${number})`;
      used.add(unique);
      nav.removeAttribute("aria-labelledby");
      nav.setAttribute("aria-label", unique);
    }
    for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) table.tabIndex = 0;
  };
  name();
  // The theme adds the buttons of code and the frames of tables when it has started.
  new MutationObserver(name).observe(document.querySelector(".md-content") ?? document.body, { childList: true, subtree: true });
});
