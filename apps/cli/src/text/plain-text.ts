/** Controls, of which terminals make commands, and marks that turn the direction of text. */
const STEERING = /[\p{Cc}\u202A-\u202E\u2066-\u2069]/gu;

/** What others wrote must not steer this terminal, nor look like something else. */
export function plain(text: string): string {
  return text.replaceAll(STEERING, "?");
}

/** True when a terminal would be steered by the text, lines apart. */
export function steers(text: string): boolean {
  return text.replaceAll("\n", "").search(STEERING) !== -1;
}

/** JSON escapes only some of them by itself; this loses nothing. */
export function plainJson(json: string): string {
  return json.replaceAll(STEERING, (mark) =>
    mark === "\n" ? mark : `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
