const PREFIX = "undo:";

/** Returns the name under which the undo of a step is recorded. */
export function undoName(step: string): string {
  return PREFIX + step;
}

/** Returns the step that is undone under this name; undefined for the name of another step. */
export function undoneStep(name: string): string | undefined {
  return name.startsWith(PREFIX) ? name.slice(PREFIX.length) : undefined;
}
