import { Pool, ProxyAgent, type Dispatcher } from "undici";
import type { KubeCredentials, TlsMaterial } from "./kube-credentials.ts";

export interface ConnectionPoolOptions {
  readonly credentials: Pick<KubeCredentials, "server" | "proxyUrl">;
  /** Connections at most; undefined for no limit. */
  readonly connections?: number;
}

/** Kept-alive connections to one API server; new ones when the client certificate changes. */
export interface ConnectionPool {
  readonly origin: string;
  /** Path before the API's own, when the server is behind another. */
  readonly basePath: string;
  for(tls: TlsMaterial): Dispatcher;
  close(): Promise<void>;
}

/** An idle connection is closed before the API server does it (90 s, Go's default there) and a write would be lost. */
const IDLE_MS = 60_000;
const CONNECT_MS = 10_000;

export function createConnectionPool({
  credentials,
  connections,
}: ConnectionPoolOptions): ConnectionPool {
  const { origin, pathname } = new URL(credentials.server);
  let current: { readonly tls: TlsMaterial; readonly dispatcher: Dispatcher } | undefined;
  const closing = new Set<Promise<void>>();

  const retire = (dispatcher: Dispatcher) => {
    const closed = dispatcher.close().finally(() => closing.delete(closed));
    closing.add(closed);
  };
  return {
    origin,
    basePath: pathname === "/" ? "" : pathname.replace(/\/+$/, ""),
    for(tls) {
      if (current?.tls === tls) return current.dispatcher;
      if (current !== undefined) retire(current.dispatcher);
      current = {
        tls,
        dispatcher: open(origin, tls, { proxyUrl: credentials.proxyUrl, connections }),
      };
      return current.dispatcher;
    },
    async close() {
      // What still runs has been aborted by whoever owns it; nothing is waited for.
      await current?.dispatcher.destroy();
      await Promise.all(closing);
    },
  };
}

function open(
  origin: string,
  tls: TlsMaterial,
  {
    proxyUrl,
    connections,
  }: { readonly proxyUrl: string | undefined; readonly connections: number | undefined },
): Dispatcher {
  const options = {
    ...(connections === undefined ? {} : { connections }),
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
    connectTimeout: CONNECT_MS,
    // 0 means none: the deadline of each call is kept by us, and a watch has its own.
    headersTimeout: 0,
    bodyTimeout: 0,
  };
  if (proxyUrl !== undefined) return new ProxyAgent({ ...options, uri: proxyUrl, requestTls: tls });
  return new Pool(origin, {
    ...options,
    connect: { ...tls, timeout: CONNECT_MS, keepAlive: true, keepAliveInitialDelay: 30_000 },
  });
}
