import type { KubeCredentials } from "@konverge/kube";

/** Credentials that can be replaced while a client uses them. The address stays. */
export interface RotatingCredentials extends KubeCredentials {
  /** False for another address, which needs other connections. */
  accepts(next: Pick<KubeCredentials, "server" | "proxyUrl">): boolean;
  rotate(next: KubeCredentials): void;
}

export function createRotatingCredentials(first: KubeCredentials): RotatingCredentials {
  let current = first;
  return {
    ...first,
    authorize: () => current.authorize(),
    forget: () => current.forget(),
    accepts: ({ server, proxyUrl }) => server === first.server && proxyUrl === first.proxyUrl,
    rotate(next) {
      current = next;
    },
  };
}
