import type { IncomingMessage, ServerResponse } from "node:http";
import type { JsonObject } from "@konverge/core";
import { methodNotAllowed } from "../errors/status-error.ts";
import { apiGroup, coreVersions, groupList, resourceList } from "./discovery.ts";
import { sendBytes, sendJson, sendStatus, sendText } from "./http-answer.ts";
import { openApiDocument, openApiIndex } from "./open-api.ts";
import { openApiV2 } from "./open-api-v2.ts";
import type { Handling } from "./handling.ts";

const OPEN_API_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/** Serves paths without a resource: discovery, health, version. Any other gets the router's 404. */
export function answerOther(
  { state, version }: Pick<Handling, "state" | "version">,
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
): void {
  request.resume();
  const parts = path.split("/").filter((part) => part !== "");
  const [root, group = "", apiVersion = ""] = parts;
  if (/^\/(healthz|livez|readyz)(\/.*)?$/.test(path)) {
    sendText(response, 200, "ok");
    return;
  }
  if (root === "openapi" && group === "v2" && parts.length === 2) {
    const isBinary = /protobuf/.test(request.headers.accept ?? "");
    const type = isBinary ? OPEN_API_V2_PROTOBUF : "application/json";
    sendBytes(response, 200, type, openApiV2(version, isBinary));
    return;
  }
  const document = documentOf();
  if (document === undefined) sendText(response, 404, "404 page not found\n");
  else if (!isAllowed(request.method ?? "")) sendStatus(response, methodNotAllowed());
  else sendJson(response, 200, JSON.stringify(document));

  /** As in kube-apiserver, groups and OpenAPI respond to any method, and the other paths only to GET. */
  function isAllowed(method: string): boolean {
    return method === "GET" || root === "openapi" || (root === "apis" && parts.length <= 2);
  }

  function documentOf(): JsonObject | undefined {
    const kinds = state.kinds.all();
    if (root === "version" && parts.length === 1) return versionDocument(version);
    if (root === "api" && parts.length === 1) return coreVersions(request.headers.host ?? "");
    if (root === "api" && parts.length === 2) return resourceList(kinds, "", group);
    if (root === "openapi" && group === "v3") {
      const inside = parts.slice(2).join("/");
      return inside === "" ? openApiIndex(kinds) : openApiDocument(kinds, inside, version);
    }
    if (root !== "apis" || parts.length > 3) return undefined;
    if (parts.length === 1) return groupList(kinds);
    return parts.length === 2 ? apiGroup(kinds, group) : resourceList(kinds, group, apiVersion);
  }
}

function versionDocument(version: string): JsonObject {
  const [major = "", minor = ""] = version.replace(/^v/, "").split(".");
  return {
    major,
    minor,
    emulationMajor: major,
    emulationMinor: minor,
    minCompatibilityMajor: major,
    minCompatibilityMinor: String(Number(minor) - 1),
    gitVersion: version,
    gitCommit: "",
    gitTreeState: "clean",
    buildDate: "1970-01-01T00:00:00Z",
    // Shows users that this is not kube-apiserver.
    goVersion: "konverge embedded API server",
    compiler: "node",
    platform: `${process.platform}/${process.arch}`,
  };
}
