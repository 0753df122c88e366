import { defined } from "@konverge/core";
import { isIP } from "node:net";
import { Pool, ProxyAgent, type Dispatcher } from "undici";
import type { KubeCredentials } from "../credentials/kube-credentials.ts";
import type { TlsMaterial } from "../credentials/tls-material.ts";

export interface ConnectionPoolOptions {
  readonly credentials: Pick<KubeCredentials, "server" | "proxyUrl">;
  /** Maximum number of connections; undefined for no limit. */
  readonly connections?: number;
  /** Takes the place of the connections. Not closed by the pool. */
  readonly dispatcher?: CallDispatcher | undefined;
}

/** The calls of undici's dispatcher that the client makes: one for requests, one for watches. */
export type CallDispatcher = Pick<Dispatcher, "dispatch" | "request">;

/** Kept-alive connections to one API server, replaced when the client certificate changes. */
export interface ConnectionPool {
  readonly origin: string;
  /** Path prefix of the API, if the server is behind another one. */
  readonly basePath: string;
  for(tls: TlsMaterial): CallDispatcher;
  close(): Promise<void>;
}

/** Idle connections are closed before the API server closes them (90 s, Go's default) and a write is lost. */
const IDLE_MS = 60_000;
const CONNECT_MS = 10_000;

export function createConnectionPool({
  credentials,
  connections,
  dispatcher: given,
}: ConnectionPoolOptions): ConnectionPool {
  const { origin, pathname } = new URL(credentials.server);
  let current: { readonly tls: TlsMaterial; readonly dispatcher: Dispatcher } | undefined;
  /** Dispatchers of older certificates; each ends with its last call. */
  const retired = new Set<Dispatcher>();

  const retire = (dispatcher: Dispatcher) => {
    retired.add(dispatcher);
    const forget = () => retired.delete(dispatcher);
    dispatcher.close().then(forget, forget);
  };
  return {
    origin,
    basePath: pathname === "/" ? "" : pathname.replace(/\/+$/, ""),
    for(tls) {
      if (given !== undefined) return given;
      if (current?.tls === tls) return current.dispatcher;
      if (current !== undefined) retire(current.dispatcher);
      current = {
        tls,
        dispatcher: open(origin, tls, { proxyUrl: credentials.proxyUrl, connections }),
      };
      return current.dispatcher;
    },
    async close() {
      const all = current === undefined ? [...retired] : [current.dispatcher, ...retired];
      await Promise.all(all.map((dispatcher) => dispatcher.destroy()));
    },
  };
}

/** Connects to a proxy. undici names the proxy's host in the TLS handshake, where TLS allows no IP address. */
function openProxy(origin: URL, { connect, ...options }: Pool.Options): Dispatcher {
  if (typeof connect !== "function")
    return new Pool(origin, { ...options, ...defined({ connect }) });
  return new Pool(origin, {
    ...options,
    connect: ({ servername, ...target }, done) => {
      const isNamed =
        servername !== undefined && isIP(servername.replace(/^\[(.*)\]$/, "$1")) === 0;
      connect(isNamed ? { ...target, servername } : target, done);
    },
  });
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
    ...defined({ connections }),
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
    connectTimeout: CONNECT_MS,
    // 0 means none: the transport enforces the deadline of each call, and a watch has its own.
    headersTimeout: 0,
    bodyTimeout: 0,
  };
  if (proxyUrl !== undefined) {
    const clientFactory = openProxy;
    return new ProxyAgent({ ...options, uri: proxyUrl, requestTls: tls, clientFactory });
  }
  return new Pool(origin, {
    ...options,
    connect: { ...tls, timeout: CONNECT_MS, keepAlive: true, keepAliveInitialDelay: 30_000 },
  });
}
