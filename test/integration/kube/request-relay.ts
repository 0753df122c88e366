import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { text } from "node:stream/consumers";
import type { KubeClient, KubeCredentials } from "@konverge/kube";
import { clientFor, sendStatus, startWireServer, type Exchange } from "./kube-wire-server.ts";

/** Matches the next request of this method whose path matches. */
export interface Match {
  readonly method: string;
  readonly path: RegExp;
  /** Default: any. */
  readonly body?: RegExp;
}

/** A relay between a client and an API server that makes the network fail at exactly one request. */
export interface RequestRelay extends AsyncDisposable {
  readonly client: KubeClient;
  /** Method and path of the forwarded requests, in order. */
  readonly passed: readonly string[];
  /** The next matching request does not arrive. */
  loseRequest(match: Match): void;
  /** The next matching request gets this response and does not arrive. */
  refuse(match: Match, status: number, reason: string): void;
  /** As `refuse`, but every matching request. Returns a function that ends it. */
  refuseAll(match: Match, status: number, message: string): () => void;
  /** The next matching request is served, but its response is lost. */
  loseAnswer(match: Match): void;
  /** The next matching request is delayed until it is released. */
  hold(match: Match): { readonly arrived: Promise<void>; release(): void };
}

interface Rule {
  readonly match: Match;
  readonly meet: (exchange: Exchange) => void;
  /** True if it is for every matching request. */
  readonly isLasting?: boolean;
}

export async function startRequestRelay(credentials: KubeCredentials): Promise<RequestRelay> {
  const rules = new Set<Rule>();
  const passed: string[] = [];

  const pass = (exchange: Exchange): Promise<Forwarded> => {
    passed.push(`${exchange.request.method ?? ""} ${exchange.url.pathname}`);
    return forward(exchange, credentials);
  };
  const serve = (exchange: Exchange) => {
    const { response } = exchange;
    pass(exchange).then(
      ({ status, type, body }) => response.writeHead(status, { "content-type": type }).end(body),
      (error: Error) => response.destroy(error),
    );
  };
  const server = await startWireServer((exchange) => {
    const { request, url, body } = exchange;
    const rule = [...rules].find(
      ({ match }) =>
        match.method === request.method &&
        match.path.test(url.pathname) &&
        (match.body?.test(body) ?? true),
    );
    if (rule === undefined) return serve(exchange);
    if (rule.isLasting !== true) rules.delete(rule);
    rule.meet(exchange);
  });
  const client = clientFor(server);

  return {
    client,
    passed,
    loseRequest: (match) =>
      void rules.add({ match, meet: ({ response }) => void response.destroy() }),
    refuse: (match, status, reason) =>
      void rules.add({ match, meet: ({ response }) => sendStatus(response, status, reason) }),
    refuseAll(match, status, message) {
      const rule: Rule = {
        match,
        meet: ({ response }) => sendStatus(response, status, "", { message }),
        isLasting: true,
      };
      rules.add(rule);
      return () => void rules.delete(rule);
    },
    loseAnswer: (match) =>
      void rules.add({
        match,
        meet: (exchange) => void pass(exchange).finally(() => exchange.response.destroy()),
      }),
    hold(match) {
      const arrived = Promise.withResolvers<void>();
      const released = Promise.withResolvers<void>();
      rules.add({
        match,
        meet: (exchange) => {
          arrived.resolve();
          void released.promise.then(() => serve(exchange));
        },
      });
      return { arrived: arrived.promise, release: () => released.resolve() };
    },
    async [Symbol.asyncDispose]() {
      await client.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

interface Forwarded {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

const FORWARDED_HEADERS = ["content-type", "accept", "user-agent"];

async function forward(
  { request, url, body }: Exchange,
  credentials: KubeCredentials,
): Promise<Forwarded> {
  const { headers, tls } = await credentials.authorize();
  const target = new URL(url.pathname + url.search, `${credentials.server}/`);
  const send = target.protocol === "https:" ? requestHttps : requestHttp;
  const kept = FORWARDED_HEADERS.map((name) => [name, request.headers[name]] as const).filter(
    ([, value]) => typeof value === "string",
  );
  const { promise, resolve, reject } = Promise.withResolvers<Forwarded>();
  const forwarded = send(
    target,
    {
      method: request.method,
      headers: {
        ...Object.fromEntries(kept),
        ...headers,
        "content-length": Buffer.byteLength(body),
      },
      ...tls,
      agent: false,
    },
    (answer) => {
      text(answer).then(
        (received) =>
          resolve({
            status: answer.statusCode ?? 0,
            type: String(answer.headers["content-type"]),
            body: received,
          }),
        reject,
      );
    },
  );
  forwarded.on("error", reject);
  forwarded.end(body);
  return promise;
}
