// The parts of other people that the explorer's page is made of. build.mjs makes one file of them.
export { Fragment, h, render } from "preact";
export { useCallback, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
export { default as htm } from "htm";
export { Virtualizer, elementScroll, observeElementOffset, observeElementRect } from "@tanstack/virtual-core";
export { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
export { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
export { json, jsonParseLinter } from "@codemirror/lang-json";
export { sql, SQLite } from "@codemirror/lang-sql";
export { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
export { linter } from "@codemirror/lint";
export { Compartment, EditorState, Prec } from "@codemirror/state";
export { drawSelection, EditorView, highlightSpecialChars, keymap, lineNumbers, placeholder } from "@codemirror/view";
export { tags } from "@lezer/highlight";
