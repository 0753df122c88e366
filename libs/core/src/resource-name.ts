/** The id of a type without its version: `deployments.apps`, or `configmaps` for the core group. */
export function resourceId({
  group,
  resource,
}: {
  readonly group: string;
  readonly resource: string;
}): string {
  return group === "" ? resource : `${resource}.${group}`;
}
