import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Gate, GateCall, CallResult } from "@konverge/core";
import {
  createKubeClient,
  type KubeClient,
  type KubeClientOptions,
  type KubeCredentials,
} from "@konverge/kube";

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly url: URL;
  readonly body: string;
}

/** A server that returns exactly the bytes that a test specifies, for behavior that no conforming API server shows. */
export interface WireServer extends AsyncDisposable {
  readonly url: string;
  readonly requests: readonly Pick<Exchange, "url" | "body">[];
  readonly sockets: ReadonlySet<Socket>;
}

export async function startWireServer(
  answer: (exchange: Exchange) => void,
  server: Server = createServer(),
): Promise<WireServer> {
  const requests: Exchange[] = [];
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const exchange = {
        request,
        response,
        url: new URL(request.url ?? "/", "http://wire"),
        body: Buffer.concat(chunks).toString(),
      };
      requests.push(exchange);
      answer(exchange);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${"setSecureContext" in server ? "https" : "http"}://127.0.0.1:${port}`,
    requests,
    sockets,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Record<string, string> = {},
): void {
  response
    .writeHead(status, { "content-type": "application/json", ...headers })
    .end(JSON.stringify(body));
}

export function sendStatus(
  response: ServerResponse,
  code: number,
  reason: string,
  more: object = {},
): void {
  sendJson(response, code, {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    code,
    reason,
    ...more,
  });
}

/** A gate that admits every call and records requests and results. */
export function watchfulGate(): {
  readonly gate: Gate;
  readonly requested: GateCall[];
  readonly settled: CallResult[];
} {
  const requested: GateCall[] = [];
  const settled: CallResult[] = [];
  return {
    requested,
    settled,
    gate: {
      admit: async (call) => {
        requested.push(call);
        return { waitedMs: 0, settle: (result) => void settled.push(result) };
      },
    },
  };
}

export function clientFor(
  { url }: WireServer,
  options: Partial<KubeClientOptions> & { readonly headers?: () => Record<string, string> } = {},
): KubeClient & AsyncDisposable {
  const { headers = () => ({}), ...rest } = options;
  const tls = {};
  const credentials: KubeCredentials = {
    server: url,
    context: "wire",
    authorize: async () => ({ headers: headers(), tls }),
    forget: () => undefined,
  };
  const client = createKubeClient({
    credentials,
    gate: watchfulGate().gate,
    userAgent: "konverge-test/1",
    ...rest,
  });
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() });
}
