/** Returns `?name=value&...`, or an empty text if all values are undefined. */
export function query(
  parameters: Readonly<Record<string, string | number | boolean | undefined>>,
): string {
  let text = "";
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined) continue;
    text += `${text === "" ? "?" : "&"}${encodeURIComponent(name)}=${encodeURIComponent(value)}`;
  }
  return text;
}
