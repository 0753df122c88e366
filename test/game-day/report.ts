import { listOf } from "./observer.ts";
import type { Row } from "./scene.ts";

export interface Played {
  readonly name: string;
  readonly rows: readonly Row[];
}

/** Formats the report as a table in Markdown, with the differences below. */
export function reportText(played: readonly Played[]): string {
  const cells = played.flatMap(({ name, rows }) =>
    rows.map(({ happened, sight, differences }, at) => [
      at === 0 ? name : "",
      happened,
      listOf(sight.alerts),
      listOf(sight.status),
      listOf(sight.dashboard),
      differences.length === 0 ? "yes" : "NO",
    ]),
  );
  const head = ["disaster", "what happened", "alerts", "status", "dashboard", "agrees"];
  const lines = [head, head.map(() => "---"), ...cells].map((row) => `| ${row.join(" | ")} |`);
  const differences = played.flatMap(({ name, rows }) =>
    rows.flatMap((row) => row.differences.map((text) => `${name}, ${row.happened}: ${text}`)),
  );
  return [...lines, "", `${differences.length} differences`, ...differences].join("\n");
}
