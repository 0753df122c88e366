/** Labels of a run by name, such as `{ region: "eu" }`. Runs are found by them. */
export type RunLabels = Readonly<Record<string, string>>;

/** Most labels of a run, and of a filter. */
export const MAX_LABELS = 10;

const NAME = /^[A-Za-z0-9](?:[-\w./]{0,61}[A-Za-z0-9])?$/;
const VALUE = /^[-\w./:@+]{1,100}$/;

/** Returns the error text for an invalid label; undefined for a valid one. */
export function findLabelIssue(name: string, value: unknown): string | undefined {
  if (!NAME.test(name)) {
    return `label name "${name}" must have 1 to 63 letters, digits, -, _, . or /, and begin and end with a letter or digit`;
  }
  if (typeof value === "string" && VALUE.test(value)) return undefined;
  return `the value of label "${name}" must have 1 to 100 letters, digits, -, _, ., /, :, @ or +`;
}
