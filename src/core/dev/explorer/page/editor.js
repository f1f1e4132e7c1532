// A CodeMirror editor. It lives in a shadow root, where its styles are a constructed sheet: the page's policy forbids
// inline ones, and needs no exception so.
import { html } from "./core.js";
import * as cm from "./vendor.js";
import { useEffect, useRef } from "./vendor.js";

const look = cm.EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--field)", border: "1px solid var(--edge)", borderRadius: "6px", fontSize: ".86rem" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", maxHeight: "var(--editor-height, 28rem)", overflow: "auto" },
  ".cm-content": { padding: ".5rem 0", minHeight: "var(--editor-least, 1.5rem)", caretColor: "var(--ink)" },
  ".cm-line": { padding: "0 .7rem" },
  ".cm-gutters": { backgroundColor: "var(--soft)", color: "var(--dim)", border: "0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-selectionBackground, &.cm-focused .cm-selectionBackground": { backgroundColor: "var(--chosen) !important" },
  ".cm-placeholder": { color: "var(--dim)" },
  ".cm-tooltip": { backgroundColor: "var(--paper)", color: "var(--ink)", border: "1px solid var(--edge)", borderRadius: "6px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-matchingBracket": { backgroundColor: "var(--chosen) !important" },
});
const colours = cm.HighlightStyle.define([
  { tag: cm.tags.keyword, color: "var(--code-keyword)", fontWeight: "600" },
  { tag: [cm.tags.string, cm.tags.special(cm.tags.string)], color: "var(--code-string)" },
  { tag: [cm.tags.number, cm.tags.bool, cm.tags.null], color: "var(--code-number)" },
  { tag: cm.tags.propertyName, color: "var(--code-name)" },
  { tag: cm.tags.comment, color: "var(--dim)", fontStyle: "italic" },
  { tag: cm.tags.typeName, color: "var(--code-name)" },
]);

function languageOf(language, schema) {
  if (language === "sql") return cm.sql({ dialect: cm.SQLite, schema: schema || {}, upperCaseKeywords: true });
  if (language === "json") return [cm.json()];
  return [];
}

// Replaces a selection as the editor itself would. Left to Chromium, what is typed over coloured text keeps the colour
// with a style of its own, which the page's policy refuses.
function typeOver({ inputType, data }, view) {
  // Not the editor's own selection, which learns only later what was selected. Other browsers have it in the document alone.
  const { anchorNode, anchorOffset, focusNode, focusOffset, isCollapsed } = (view.root.getSelection ? view.root : document).getSelection();
  if (inputType !== "insertText" || data === null || isCollapsed || view.composing || view.state.selection.ranges.length > 1) return false;
  if (!view.contentDOM.contains(anchorNode) || !view.contentDOM.contains(focusNode)) return false;
  const [from, to] = [view.posAtDOM(anchorNode, anchorOffset), view.posAtDOM(focusNode, focusOffset)].sort((one, other) => one - other);
  const insert = () => view.state.update({
    changes: { from, to, insert: data }, selection: { anchor: from + data.length }, userEvent: "input.type", scrollIntoView: true,
  });
  if (!view.state.facet(cm.EditorView.inputHandler).some((handle) => handle(view, from, to, data, insert))) view.dispatch(insert());
  return true;
}

export function Editor({ value, change, language = "text", schema, label, run, readOnly = false, least, hint = "" }) {
  const host = useRef(null), state = useRef({ told: new Set() });
  Object.assign(state.current, { change, run });
  useEffect(() => {
    const root = host.current.shadowRoot || host.current.attachShadow({ mode: "open", delegatesFocus: true });
    const parts = new cm.Compartment();
    const runs = () => { if (!state.current.run) return false; state.current.run(); return true; };
    const view = new cm.EditorView({
      root, parent: root,
      state: cm.EditorState.create({
        doc: value,
        extensions: [
          look, cm.syntaxHighlighting(colours), cm.highlightSpecialChars(), cm.EditorView.lineWrapping, cm.bracketMatching(),
          parts.of(languageOf(language, schema)),
          cm.EditorView.contentAttributes.of({ "aria-label": label, ...(readOnly ? { tabindex: "0", "aria-readonly": "true" } : {}) }),
          readOnly ? [cm.EditorState.readOnly.of(true), cm.EditorView.editable.of(false)] : [
            cm.history(), cm.drawSelection(), cm.closeBrackets(), cm.autocompletion({ icons: false }), cm.indentOnInput(), cm.placeholder(hint),
            language === "json" ? cm.linter((view) => view.state.doc.toString().trim() ? cm.jsonParseLinter()(view) : []) : [],
            cm.Prec.highest(cm.keymap.of([{ key: "Mod-Enter", run: runs }])),
            cm.EditorView.domEventHandlers({ beforeinput: typeOver }),
            cm.keymap.of([...cm.closeBracketsKeymap, ...cm.defaultKeymap, ...cm.historyKeymap, ...cm.completionKeymap]),
            cm.EditorView.updateListener.of((update) => { if (!update.docChanged || state.current.setting) return;
              const text = update.state.doc.toString();
              state.current.told.add(text);
              state.current.change?.(text);
            }),
          ],
        ],
      }),
    });
    Object.assign(state.current, { view, parts });
    return () => view.destroy();
  }, [language, readOnly, label]);
  useEffect(() => { state.current.view.dispatch({ effects: state.current.parts.reconfigure(languageOf(language, schema)) }); }, [schema]);
  useEffect(() => {
    const { view } = state.current;
    // Who types fast is ahead of what the panel has been told so far, and must not be set back to it.
    const { told } = state.current;
    if (view.state.doc.toString() === value) { told.clear(); return; }
    if (told.has(value)) return;
    state.current.setting = true;
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value } });
    state.current.setting = false;
  }, [value]);
  return html`<div class="editor" ref=${host} style=${least ? { "--editor-least": least } : undefined}></div>`;
}
