/** Subresources whose requests go to a program in a Pod, a Service or a node. */
const CONNECTIONS: ReadonlySet<string> = new Set(["attach", "exec", "portforward", "proxy"]);

export function hasConnection(subresource: string | undefined): boolean {
  return CONNECTIONS.has(subresource ?? "");
}

/** True for a request that reaches a program, which may change anything. A GET of a proxy counts as a read. */
export function isConnection({
  method,
  subresource,
}: {
  readonly method: string;
  readonly subresource: string | undefined;
}): boolean {
  return hasConnection(subresource) && (method !== "GET" || subresource !== "proxy");
}
