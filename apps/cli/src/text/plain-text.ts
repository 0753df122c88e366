import { showEncoded } from "@konverge/core";

/** Control characters and marks that change the direction of text. */
const STEERING = /[\p{Cc}\u202A-\u202E\u2066-\u2069]/gu;

/** Replaces characters that could control the terminal or disguise foreign text, and encoded values by their description. */
export function plain(text: string): string {
  return showEncoded(text).replaceAll(STEERING, "?");
}

/** True if the text has control characters other than line breaks. */
export function steers(text: string): boolean {
  return text.replaceAll("\n", "").search(STEERING) !== -1;
}

/** Escapes the control characters that JSON leaves unescaped. */
export function plainJson(json: string): string {
  return json.replaceAll(STEERING, (mark) =>
    mark === "\n" ? mark : `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
