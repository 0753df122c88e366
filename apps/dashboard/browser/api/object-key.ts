/** The parts of `controller/cluster/type/namespace/name`, decoded. */
export interface KeyParts {
  readonly controller: string;
  readonly cluster: string;
  /** `plural.group`. */
  readonly resource: string;
  /** Absent for cluster-scoped objects. */
  readonly namespace?: string;
  readonly name: string;
}

export function partsOf(key: string): KeyParts {
  const [controller = "", cluster = "", resource = "", namespace = "_", name = ""] = key.split("/");
  return {
    controller: decodeURIComponent(controller),
    cluster: decodeURIComponent(cluster),
    resource: decodeURIComponent(resource),
    ...(namespace === "_" ? {} : { namespace: decodeURIComponent(namespace) }),
    name: decodeURIComponent(name),
  };
}
