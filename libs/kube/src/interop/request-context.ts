import { assertNames } from "../names/resource-path.ts";

/** The methods of client-node's `RequestContext`, which its generated code and middleware call. */
export interface RequestContext {
  getUrl(): string;
  setUrl(url: string): void;
  getHttpMethod(): string;
  getHeaders(): Record<string, string>;
  setHeaderParam(name: string, value: string): void;
  addCookie(name: string, value: string): void;
  getBody(): unknown;
  setBody(body: unknown): void;
  setQueryParam(name: string, value: string): void;
  appendQueryParam(name: string, value: string): void;
  getSignal(): AbortSignal | undefined;
  setSignal(signal: AbortSignal): void;
  getDispatcher(): undefined;
  /** Ignored: the transport has its own connections. */
  setDispatcher(): void;
}

/** Stands for the server of the client; only the path and the query are used. */
const ORIGIN = "http://konverge.invalid";

export function createRequestContext(endpoint: string, method: string): RequestContext {
  // Before the URL resolves dot segments.
  assertNames(endpoint);
  let url = new URL(ORIGIN + endpoint);
  let body: unknown;
  let signal: AbortSignal | undefined;
  const headers: Record<string, string> = {};
  return {
    getUrl: () => url.toString(),
    setUrl(next) {
      url = new URL(next);
    },
    getHttpMethod: () => method,
    getHeaders: () => headers,
    setHeaderParam(name, value) {
      const known = Object.keys(headers).find((key) => key.toLowerCase() === name.toLowerCase());
      if (known !== undefined) delete headers[known];
      headers[name] = value;
    },
    addCookie(name, value) {
      headers["Cookie"] = `${headers["Cookie"] ?? ""}${name}=${value}; `;
    },
    getBody: () => body,
    setBody(next) {
      body = next;
    },
    setQueryParam: (name, value) => url.searchParams.set(name, value),
    appendQueryParam: (name, value) => url.searchParams.append(name, value),
    getSignal: () => signal,
    setSignal(next) {
      signal = next;
    },
    getDispatcher: () => undefined,
    setDispatcher: () => undefined,
  };
}
