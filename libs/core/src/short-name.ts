/** Formats an object for people, as `namespace/name`; without a namespace, only its name. */
export function shortName({
  namespace,
  name,
}: {
  readonly namespace?: string | undefined;
  readonly name: string;
}): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}
