// A question becomes words of the index, in the worker of the search, which this file stands in front of.
// A word counts most as it is, less as the beginning of another, and least without its ending. Small words of a sentence
// are left out. A text with the signs of an error, or a long one, is looked for among the texts of errors first.
// `req.json` is looked for among the members of classes first.
// What stands in quotes as a whole, and what begins with a sign of the engine's own language, is left to the engine.
function searchWords(question) {
  const small = new Set(
    ("a an and are as at be by can do does for from get has have how i if in into is it make my no not of on or that the then there " +
     "this to use was what when where which why with you your").split(" "));
  const text = question.trim();
  if (/^"[^"]*"$|^[+-]/.test(text)) return question;
  const isError = /Error\b|[("`=[]|: /.test(text) || text.split(/\s+/).length > 6;
  const member = /^(req|res|ctx)\.(\w+)/.exec(text);
  if (member) return `+tags:${member[1]} tags:${member[2]}^30`;
  const words = text.replace(/\[core-[a-z]+\]/g, " ").replace(/[^\p{L}\p{N}_.-]+/gu, " ").split(/\s+/).map((word) => word.replace(/^[.-]+|[.-]+$/g, "")).filter(Boolean);
  const kept = words.filter((word) => words.length === 1 || !small.has(word.toLowerCase()));
  return (kept.length ? kept : words)
    .flatMap((word) => {
      if (isError) return [`tags:${word}^10`, word];
      const stem = /^[a-z-]{5,}$/i.test(word) ? word.replace(/(ations?|ates?|ated|ings?|ies|es|ed|s)$/i, "") : word;
      return [`${word}^6`, word, ...(stem !== word && stem.length > 3 ? [stem] : [])];
    })
    .join(" ");
}
addEventListener("message", (event) => {
  if (event.data.type === 2) event.data.data = searchWords(event.data.data);
});
