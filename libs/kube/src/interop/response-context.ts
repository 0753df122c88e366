import type { ResponseContext as ClientNodeResponse } from "@kubernetes/client-node";
import type { ForwardAnswer } from "../contract/forward.ts";

/** The form of client-node's `ResponseContext`, which its generated code and middleware read. */
export type ResponseContext = Pick<ClientNodeResponse, keyof ClientNodeResponse>;

export function createResponseContext({ status, headers, text }: ForwardAnswer): ResponseContext {
  const binary = async () => Buffer.from(text);
  const parsedHeader = (name: string) => parseHeader(headers[name] ?? "");
  return {
    httpStatusCode: status,
    headers,
    body: {
      text: async () => text,
      binary,
      stream: () => new Blob([text]).stream(),
    },
    getParsedHeader: parsedHeader,
    getBodyAsFile: async () => ({
      data: await binary(),
      name: parsedHeader("content-disposition")["filename"] ?? "",
    }),
    getBodyAsAny: async () => text,
  };
}

/** Parses `value; parameter="text"`; the value has the key `""`. */
function parseHeader(header: string): Record<string, string> {
  const parts = header.split(";").map((part) => part.trim());
  return Object.fromEntries(
    parts
      .filter((part) => part !== "")
      .map((part) => {
        const [key = "", value] = part.split("=", 2);
        return value === undefined
          ? ["", key.toLowerCase()]
          : [key.toLowerCase(), value.trim().replace(/^"(.*)"$/, "$1")];
      }),
  );
}
