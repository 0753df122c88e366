/** What a run is named by in its workflow: the rest of `workflow/cluster/id`. */
export function idOf(id: string): string {
  return id.split("/").slice(2).join("/");
}

/** The workflow whose runs a queue holds; undefined for a controller. */
export function workflowOf(queue: string): string | undefined {
  return /^workflow\.(.+)$/.exec(queue)?.[1];
}
