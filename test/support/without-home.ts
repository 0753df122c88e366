/**
 * Removes the labels `cluster` and `installation`, which almost every series has, from a scrape or a series. `cluster` keeps the
 * series of one cluster, with its label.
 */
export function withoutHome(text: string, cluster?: string): string {
  const own = cluster === undefined ? text : linesOf(text, cluster);
  return own
    .replaceAll(/(?<=[{,])(?:cluster|installation)="[^"]*",?/g, "")
    .replaceAll(/,\}/g, "}")
    .replaceAll("{}", "");
}

function linesOf(text: string, cluster: string): string {
  const lines = text.split("\n").filter((line) => line.includes(`cluster="${cluster}"`));
  return `${lines.join("\n")}\n`;
}
