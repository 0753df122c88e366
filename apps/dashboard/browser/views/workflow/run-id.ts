/** What a run is named by in its workflow: the rest of `workflow/cluster/id`. */
export function idOf(id: string): string {
  return id.split("/").slice(2).join("/");
}
