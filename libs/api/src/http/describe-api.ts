import * as contracts from "@konverge/contracts";
import * as records from "@konverge/records";
import { ERRORS, type ErrorCode } from "@konverge/core";
import { z } from "zod";
import { PROBLEM } from "./problem.ts";
import type { Route } from "./route.ts";

type Json = Record<string, unknown>;

const COMPONENTS = "#/components/schemas/";
const RESPONSES = "#/components/responses/";
const INFO = {
  title: "Konverge",
  version: "1",
  description:
    "Reconcile requests and their results, workflow runs, and operator actions. Changes accept an Idempotency-Key. Errors are problems (RFC 9457) with a stable code; docs/errors.md describes each code.",
  license: { name: "Apache-2.0", identifier: "Apache-2.0" },
};

/** Returns the OpenAPI 3.1 document of the routes, from the schemas that validate their requests. */
export function describeApi(routes: readonly Route[]): Json {
  const named = nameSchemas();
  const paths: Record<string, Json> = {};
  const responses: Json = {};
  for (const route of routes) {
    const problems = problemsOf(route);
    for (const [name, , response] of problems) responses[name] = response;
    const refs = problems.map(([name, status]) => [status, { $ref: `${RESPONSES}${name}` }]);
    paths[route.path] = {
      ...paths[route.path],
      [route.method]: describeRoute(route, named, Object.fromEntries(refs)),
    };
  }
  const { schemas } = z.toJSONSchema(named, { uri: (id) => `${COMPONENTS}${id}`, io: "output" });
  return {
    openapi: "3.1.0",
    info: INFO,
    security: [{ token: [] }, { session: [] }, {}],
    paths,
    components: {
      securitySchemes: {
        token: { type: "http", scheme: "bearer" },
        session: { type: "apiKey", in: "cookie", name: "konverge_session" },
      },
      responses: sorted(responses),
      schemas: usedBy(paths, schemas),
    },
  };
}

/** Returns the referenced components, direct or indirect. */
function usedBy(paths: Json, schemas: Readonly<Record<string, object>>): Json {
  const used: Json = {};
  const visit = (part: unknown): void => {
    for (const [, id = ""] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      const schema = schemas[id];
      if (id in used || schema === undefined) continue;
      used[id] = withoutIds(schema);
      visit(schema);
    }
  };
  visit([paths, { $ref: `${COMPONENTS}Problem` }]);
  return sorted(used);
}

function sorted(named: Json): Json {
  return Object.fromEntries(
    Object.entries(named).toSorted(([one], [other]) => (one < other ? -1 : 1)),
  );
}

type Named = z.core.$ZodRegistry<{ id: string }>;

/** Names the schemas of responses by their exports. */
function nameSchemas(): Named {
  const named: Named = z.registry<{ id: string }>();
  for (const [name, schema] of Object.entries({ ...contracts, ...records })) {
    if (!(schema instanceof z.ZodType) || !/(?<!Query)Schema$/.test(name)) continue;
    // Durations have an input only.
    if (name === "settingsSchema" || name.startsWith("submitMutation")) continue;
    const short = name.replace(/Schema$/, "");
    named.add(schema, { id: short.slice(0, 1).toUpperCase() + short.slice(1) });
  }
  return named;
}

function describeRoute(route: Route, named: Named, problems: Json): Json {
  const { id, summary, role, body, takesBytes, answer, status = 200, produces } = route;
  const content =
    status === 204 ? {} : { [produces ?? "application/json"]: { schema: refer(answer, named) } };
  const open = takesBytes === true ? SIGNED : "Requires no token.";
  const description = role === "none" ? open : `Role: ${role}.`;
  const done =
    status === 202 ? { "200": { description: "The request has finished", content } } : {};
  return {
    operationId: id,
    summary,
    description,
    ...(role === "none" ? { security: [] } : {}),
    parameters: [...pathParameters(route), ...queryParameters(route), ...headerParameters(route)],
    ...(takesBytes === true ? { requestBody: { required: true, content: EVENTS } } : {}),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { "application/json": { schema: bodySchema(route, body) } },
          },
        }),
    responses: {
      ...done,
      [status]:
        status === 204
          ? { description: "No content" }
          : { description: status === 202 ? "Accepted" : "OK", content },
      ...problems,
    },
  };
}

const SIGNED =
  "Requires no API token. The sender proves its identity as the source demands: with a signature in a header, or with the secret of the source in `Authorization: Bearer`.";

/** The bodies of deliveries: any event. */
const EVENTS: Json = {
  "application/json": { schema: {} },
  "application/cloudevents+json": {
    schema: {
      type: "object",
      properties: {
        specversion: { const: "1.0" },
        id: { type: "string" },
        source: { type: "string" },
        type: { type: "string" },
        data: {},
      },
      required: ["specversion", "id", "source", "type"],
    },
  },
  "text/plain": { schema: { type: "string" } },
};

function pathParameters({ path }: Route): Json[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
}

function queryParameters({ query }: Route): Json[] {
  if (query === undefined) return [];
  const { properties = {}, required = [] } = inputSchema(query);
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema,
  }));
}

/** The forms that the routes require. */
const HEADER_FORMS: Readonly<Record<string, Json>> = {
  "idempotency-key": { pattern: String.raw`^[\x21-\x7e]{1,255}$` },
  "last-event-id": { pattern: String.raw`^\d{1,15}-\d{1,15}\.\d{1,15}-\d{1,15}\.\d{1,15}$` },
};

function headerParameters({ method, role, headers = {} }: Route): Json[] {
  const isChange = method !== "get" && role !== "none";
  const once = {
    "idempotency-key": "Idempotency key; a repeated request returns the first response",
  };
  return Object.entries({ ...(isChange ? once : {}), ...headers }).map(([name, description]) => ({
    name,
    in: "header",
    required: false,
    description,
    schema: { type: "string", ...HEADER_FORMS[name] },
  }));
}

/** `by` is optional, because a token names the author. */
function bodySchema({ isOperatorAction }: Route, body: z.ZodType): Json {
  const { required = [], ...schema } = inputSchema(body);
  const needed = isOperatorAction === true ? required.filter((name) => name !== "by") : required;
  return { ...schema, ...(needed.length === 0 ? {} : { required: needed }) };
}

/** Returns the error responses by status; equal lists of codes share a name. */
function problemsOf(route: Route): [name: string, status: number, response: Json][] {
  const byStatus = Map.groupBy(problemCodes(route), (code) => ERRORS[code].httpStatus);
  return [...byStatus].map(([status, found]) => {
    const codes = found.toSorted();
    const description = codes.map((code) => `${code}: ${ERRORS[code].title}.`).join(" ");
    const problem = { $ref: `${COMPONENTS}Problem` };
    const schema = { allOf: [problem, { properties: { code: { enum: codes } } }] };
    return [codes.join("."), status, { description, content: { [PROBLEM]: { schema } } }];
  });
}

/** Returns every error code of a route except `internal`. */
function problemCodes(route: Route): Set<ErrorCode> {
  const { role, query, body, method, path, headers, problems = [] } = route;
  const codes = new Set<ErrorCode>(problems);
  codes.add("redis_unavailable");
  if (role !== "none") for (const code of ANYBODY) codes.add(code);
  if (body !== undefined) for (const code of WITH_BODY) codes.add(code);
  if (query !== undefined || headers !== undefined) codes.add("invalid_request");
  if (path.includes("{") || body !== undefined) codes.add("invalid_key");
  if (method !== "get" && role !== "none") for (const code of CHANGES) codes.add(code);
  return codes;
}

const ANYBODY = ["unauthorized", "forbidden", "rate_limited", "identity_unavailable"] as const;
const WITH_BODY = [
  "invalid_body",
  "body_too_large",
  "unsupported_media_type",
  "invalid_request",
] as const;
const CHANGES = ["idempotency_in_flight", "idempotency_mismatch", "invalid_request"] as const;

interface ObjectSchema extends Json {
  readonly properties?: Json;
  readonly required?: readonly string[];
}

/** The schema of the input, before defaults and units. */
function inputSchema(schema: z.ZodType): ObjectSchema {
  return withoutIds(z.toJSONSchema(schema, { io: "input" }));
}

function refer(schema: z.ZodType, named: Named): Json {
  const id = named.get(schema)?.id;
  if (id !== undefined) return { $ref: `${COMPONENTS}${id}` };
  return withoutIds(z.toJSONSchema(schema, { io: "output" }));
}

function withoutIds(schema: object): Json {
  const { $schema: _, $id: __, id: ___, ...rest } = schema as Json;
  return rest;
}
