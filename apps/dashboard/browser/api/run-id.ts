/** Returns the last part of `workflow/cluster/id`, which is unique within a workflow. */
export function idOf(id: string): string {
  return id.split("/").slice(2).join("/");
}

/** Returns the workflow of a queue, or undefined for a controller's queue. */
export function workflowOf(queue: string): string | undefined {
  return /^workflow\.(.+)$/.exec(queue)?.[1];
}
