const NAME = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const PREFIX =
  /^(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const VALUE = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

/** Returns the problems of the labels of a cluster, as label and text. The rules are those of labels in Kubernetes. */
export function findClusterLabelIssues(
  labels: unknown,
): (readonly [label: string | undefined, detail: string])[] {
  if (labels === undefined) return [];
  if (typeof labels !== "object" || labels === null || Array.isArray(labels)) {
    return [[undefined, 'must be an object such as { tier: "prod" }']];
  }
  return Object.entries(labels).flatMap(([label, value]: [string, unknown]) => {
    const detail = isLabelName(label) ? findValueIssue(value) : `${NAME_RULE}; rename it`;
    return detail === undefined ? [] : [[label, detail] as const];
  });
}

const NAME_RULE =
  "is not a label name: 1 to 63 letters, digits, -, _ and ., after an optional DNS name and a slash";

function isLabelName(label: string): boolean {
  const parts = label.split("/");
  const name = parts.at(-1) ?? "";
  return (
    parts.length <= 2 && NAME.test(name) && (parts.length === 1 || PREFIX.test(parts[0] ?? ""))
  );
}

function findValueIssue(value: unknown): string | undefined {
  if (typeof value === "string" && VALUE.test(value)) return undefined;
  const given = JSON.stringify(value) ?? String(value);
  const shown = given.length > 80 ? `${given.slice(0, 80)}...` : given;
  return `must be a text of at most 63 letters, digits, -, _ and ., such as "prod" (got ${shown})`;
}
