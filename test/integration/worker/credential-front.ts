import { request as send, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { createCertificateAuthority } from "../kube/certificate-authority.ts";
import { sendStatus } from "../kube/kube-wire-server.ts";

/**
 * A TLS server in front of an API server without authentication. It accepts one identity at a time: a bearer token, or the common
 * name of a client certificate. Like kube-apiserver, it keeps the connections and watches of a revoked identity.
 */
export class CredentialFront implements AsyncDisposable {
  readonly authority = createCertificateAuthority();
  /** The only identity that is accepted. */
  identity = "";
  /** Calls that were answered with 401. */
  rejected = 0;
  readonly #target: string;
  readonly #server;

  constructor(target: string) {
    this.#target = target;
    const { cert, key } = this.authority.issue("front", ["127.0.0.1"]);
    // Client certificates are optional.
    const mayAuthenticate = { requestCert: true, rejectUnauthorized: false };
    this.#server = createServer(
      { cert, key, ca: this.authority.ca, ...mayAuthenticate },
      (request, response) => this.#serve(request, response),
    );
  }

  /** Returns the cluster of a kubeconfig. */
  async listen(): Promise<object> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const { port } = this.#server.address() as AddressInfo;
    return {
      server: `https://127.0.0.1:${port}`,
      "certificate-authority-data": Buffer.from(this.authority.ca).toString("base64"),
    };
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const socket = request.socket as TLSSocket;
    const client: unknown = socket.authorized ? socket.getPeerCertificate().subject?.CN : undefined;
    const identity = request.headers.authorization?.replace("Bearer ", "") ?? client;
    if (identity !== this.identity) {
      this.rejected += 1;
      request.resume();
      sendStatus(response, 401, "Unauthorized");
      return;
    }
    const { authorization: _, ...headers } = request.headers;
    const forwarded = send(
      new URL(request.url ?? "/", this.#target),
      { method: request.method, headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        response.flushHeaders();
        answer.pipe(response);
      },
    );
    forwarded.on("error", (error) => response.destroy(error));
    response.on("close", () => forwarded.destroy());
    request.pipe(forwarded);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
