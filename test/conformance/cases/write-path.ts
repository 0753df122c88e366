import { uidIn, versionIn, type Case } from "../case.ts";
import {
  APPLY,
  configMap,
  configMaps,
  gadget,
  gadgets,
  JSON_PATCH,
  MERGE,
  STRATEGIC,
} from "../objects.ts";
import { applyPatch, get, jsonPatch, mergePatch, post, put, remove } from "../steps.ts";

const create = post(configMaps, 201, configMap({ data: { a: "1" } }), { as: "made" });
const another = "11111111-2222-3333-4444-555555555555";
/** Makes the version in `made` stale. */
const touch = mergePatch(
  `${configMaps}/{o}`,
  { code: 200, version: { newSince: "made" } },
  { data: { touched: "yes" } },
  { as: "touched" },
);
const one = `${configMaps}/{o}`;
const CONFLICT =
  /^Operation cannot be fulfilled on configmaps "c\d+": the object has been modified; please apply your changes to the latest version and try again$/;
const stale = { code: 409, reason: "Conflict", message: CONFLICT } as const;
/** Reported twice: by the common validation and by that of the kind. */
const UID_CAUSE = { reason: "FieldValueInvalid", field: "metadata.uid" };
/** Text that only Go's encoder escapes, and text that both encode equally. */
const TEXT = "<&>\u2028\u2029";
const PLAIN = '\u00e4\u{1f600}/"\\\t\b\f\u0001\u007f';
const REFUSED = "the server rejected our request due to an error in our request";

/** The responses that determine how a client must write: one case per fact. */
export const writePath: readonly Case[] = [
  {
    name: "a merge patch drops nulls in the objects of a list, and keeps null items",
    steps: [
      post(gadgets, 201, gadget({ list: [{ kept: null }] })),
      mergePatch(`${gadgets}/{o}`, { code: 200, body: { list: [{ kept: null }] } }, { other: 1 }),
      mergePatch(
        `${gadgets}/{o}`,
        { code: 200, body: { list: [{ b: [{ d: 1 }, [{}]] }, null] } },
        { list: [{ a: null, b: [{ c: null, d: 1 }, [{ e: null }]] }, null] },
      ),
    ],
  },
  {
    name: "JSON Patch with a failing test: 422 without causes",
    steps: [
      create,
      jsonPatch(
        one,
        { code: 422, reason: "Invalid", message: REFUSED, causes: [], body: { details: {} } },
        [
          { op: "test", path: "/data/a", value: "2" },
          { op: "replace", path: "/data/a", value: "3" },
        ],
      ),
      get(one, { code: 200, version: { sameAs: "made" }, body: { data: { a: "1" } } }),
    ],
  },
  {
    name: "JSON Patch that removes a missing path: the same 422",
    steps: [
      create,
      jsonPatch(one, { code: 422, reason: "Invalid", message: REFUSED, causes: [] }, [
        { op: "remove", path: "/data/none" },
      ]),
    ],
  },
  {
    name: "JSON Patch: test of a missing path against null succeeds",
    steps: [
      create,
      jsonPatch(
        one,
        { code: 200, version: { newSince: "made" }, body: { data: { a: "1", b: "2" } } },
        [
          { op: "test", path: "/data/none", value: null },
          { op: "add", path: "/data/b", value: "2" },
        ],
      ),
    ],
  },
  {
    name: "JSON Patch: test of a path with a missing parent: 422, even against null",
    steps: [
      create,
      jsonPatch(one, { code: 422, reason: "Invalid", message: REFUSED, causes: [] }, [
        { op: "test", path: "/binaryData/none", value: null },
      ]),
      jsonPatch(one, { code: 422, reason: "Invalid", message: REFUSED, causes: [] }, [
        { op: "test", path: "/data/a/none", value: null },
      ]),
      jsonPatch(one, { code: 200, body: { binaryData: { b: "Yg==" } } }, [
        { op: "test", path: "/binaryData", value: null },
        { op: "test", path: "/data/none", value: null },
        { op: "add", path: "/binaryData", value: { b: "Yg==" } },
      ]),
    ],
  },
  {
    name: "JSON Patch: test of a missing list item: 422, even against null",
    steps: [
      post(configMaps, 201, configMap({ data: { a: "1" } }, { finalizers: ["example.com/a"] })),
      ...["1", "-", "-1", "none", "00", ""].map((part) =>
        jsonPatch(one, { code: 422, reason: "Invalid", message: REFUSED, causes: [] }, [
          { op: "test", path: `/metadata/finalizers/${part}`, value: null },
        ]),
      ),
      jsonPatch(one, 200, [
        { op: "test", path: "/metadata/finalizers/0", value: "example.com/a" },
        { op: "remove", path: "/metadata/finalizers/0" },
      ]),
    ],
  },
  {
    name: "JSON Patch: test of an object ignores the order of its members",
    steps: [
      post(configMaps, 201, configMap({ data: { a: "1", b: "2" } })),
      jsonPatch(one, { code: 200, body: { data: { a: "3", b: "2" } } }, [
        { op: "test", path: "/data", value: { b: "2", a: "1" } },
        { op: "replace", path: "/data/a", value: "3" },
      ]),
      jsonPatch(one, { code: 422, message: REFUSED }, [
        { op: "test", path: "/data", value: { a: "3" } },
      ]),
      jsonPatch(one, { code: 422, message: REFUSED }, [
        { op: "test", path: "/data", value: { a: "3", b: "2", c: null } },
      ]),
    ],
  },
  {
    name: "JSON Patch: the text of a test must be encoded as by Go's encoder",
    steps: [
      post(configMaps, 201, configMap({ data: { a: TEXT, plain: PLAIN } })),
      jsonPatch(one, 200, [{ op: "test", path: "/data/plain", value: PLAIN }]),
      jsonPatch(one, { code: 422, reason: "Invalid", message: REFUSED, causes: [] }, [
        { op: "test", path: "/data/a", value: TEXT },
      ]),
      {
        send: `PATCH ${one}`,
        type: JSON_PATCH,
        text: String.raw`[{"op":"test","path":"/data/a","value":"\u003c\u0026\u003e\u2028\u2029"},{"op":"add","path":"/data/b","value":"<"}]`,
        expect: { code: 200, body: { data: { a: TEXT, b: "<" } } },
      },
    ],
  },
  {
    name: "JSON Patch: test of a stale resourceVersion is 422, not 409",
    steps: [
      create,
      touch,
      jsonPatch(one, { code: 422, reason: "Invalid", message: REFUSED }, (seen) => [
        { op: "test", path: "/metadata/resourceVersion", value: versionIn(seen, "made") },
        { op: "add", path: "/data/b", value: "2" },
      ]),
    ],
  },
  {
    name: "JSON Patch: replacing resourceVersion with a stale one is 409",
    steps: [
      create,
      touch,
      jsonPatch(one, stale, (seen) => [
        { op: "replace", path: "/metadata/resourceVersion", value: versionIn(seen, "made") },
        { op: "add", path: "/data/b", value: "2" },
      ]),
      jsonPatch(one, { code: 200, body: { data: { b: "2" } } }, (seen) => [
        { op: "replace", path: "/metadata/resourceVersion", value: versionIn(seen, "touched") },
        { op: "add", path: "/data/b", value: "2" },
      ]),
    ],
  },
  {
    name: "JSON Patch with copy, move and list indexes",
    steps: [
      post(
        configMaps,
        201,
        configMap({ data: { a: "1" } }, { finalizers: ["example.com/a", "example.com/b"] }),
      ),
      jsonPatch(one, { code: 422, reason: "Invalid" }, [
        { op: "copy", from: "/data/a", path: "/data/b" },
        { op: "move", from: "/data/a", path: "/data/c" },
        { op: "remove", path: "/metadata/finalizers/0" },
        { op: "add", path: "/metadata/finalizers/-", value: "example.com/c" },
        { op: "add", path: "/metadata/labels", value: { "a~b": "x" } },
        { op: "replace", path: "/metadata/labels/a~0b", value: "y" },
      ]),
      jsonPatch(
        one,
        {
          code: 200,
          body: {
            data: { b: "1", c: "1" },
            metadata: { finalizers: ["example.com/b", "example.com/c"] },
          },
          absent: ["data.a"],
        },
        [
          { op: "copy", from: "/data/a", path: "/data/b" },
          { op: "move", from: "/data/a", path: "/data/c" },
          { op: "remove", path: "/metadata/finalizers/0" },
          { op: "add", path: "/metadata/finalizers/-", value: "example.com/c" },
        ],
      ),
      mergePatch(
        one,
        { code: 200, absent: ["metadata.finalizers"] },
        { metadata: { finalizers: null } },
      ),
    ],
  },
  {
    name: "merge patch with a stale resourceVersion: 409",
    steps: [
      create,
      touch,
      mergePatch(one, stale, (seen) => ({
        metadata: { resourceVersion: versionIn(seen, "made") },
        data: { b: "2" },
      })),
    ],
  },
  {
    name: "merge patch without resourceVersion never conflicts",
    steps: [
      create,
      touch,
      mergePatch(
        one,
        { code: 200, body: { data: { b: "2", touched: "yes" } }, absent: ["data.a"] },
        { data: { b: "2", a: null } },
      ),
    ],
  },
  {
    name: "merge patch with the right version and another uid: 422 for metadata.uid",
    steps: [
      create,
      mergePatch(
        one,
        {
          code: 422,
          reason: "Invalid",
          causes: [UID_CAUSE, UID_CAUSE],
          message: /field is immutable/,
        },
        (seen) => ({
          metadata: { resourceVersion: versionIn(seen, "made"), uid: another },
          data: { b: "2" },
        }),
      ),
    ],
  },
  {
    name: "a merge patch without a change keeps the version",
    steps: [
      create,
      mergePatch(one, { code: 200, version: { sameAs: "made" } }, { data: { a: "1" } }),
    ],
  },
  {
    name: "an apply without a change keeps the version",
    steps: [
      applyPatch(`${one}?fieldManager=fm1`, 201, configMap({ data: { a: "1" } }), { as: "made" }),
      applyPatch(
        `${one}?fieldManager=fm1`,
        { code: 200, version: { sameAs: "made" } },
        configMap({ data: { a: "1" } }),
      ),
    ],
  },
  {
    name: "a PUT without a change keeps the version",
    steps: [
      create,
      put(one, { code: 200, version: { sameAs: "made" } }, (seen) => seen["made"]?.body ?? null),
    ],
  },
  {
    name: "PUT with a stale resourceVersion: 409",
    steps: [
      create,
      touch,
      put(one, { ...stale, body: { details: { name: "{o}", kind: "configmaps" } } }, (seen) =>
        configMap({ data: { a: "9" } }, { resourceVersion: versionIn(seen, "made") }),
      ),
    ],
  },
  {
    name: "PUT without resourceVersion overwrites a ConfigMap",
    steps: [
      create,
      touch,
      put(
        one,
        { code: 200, version: { newSince: "touched" }, absent: ["data.a", "data.touched"] },
        configMap({ data: { z: "9" } }),
      ),
    ],
  },
  {
    name: "PUT with another uid: 409 from the storage",
    steps: [
      create,
      put(one, { code: 409, reason: "Conflict", message: /StorageError: invalid object/ }, (seen) =>
        configMap({ data: { z: "9" } }, { resourceVersion: versionIn(seen, "made"), uid: another }),
      ),
    ],
  },
  {
    name: "PUT to a missing name: 404",
    steps: [
      put(
        one,
        { code: 404, reason: "NotFound", message: 'configmaps "{o}" not found' },
        configMap({ data: { a: "1" } }),
      ),
    ],
  },
  {
    name: "POST of an existing name: 409 AlreadyExists",
    steps: [
      create,
      post(
        configMaps,
        { code: 409, reason: "AlreadyExists", message: 'configmaps "{o}" already exists' },
        configMap(),
      ),
    ],
  },
  {
    name: "apply against another manager's field: 409 with the manager and field",
    steps: [
      applyPatch(`${one}?fieldManager=fm1`, 201, configMap({ data: { a: "1", b: "1" } })),
      applyPatch(
        `${one}?fieldManager=fm2`,
        {
          code: 409,
          reason: "Conflict",
          message: 'Apply failed with 1 conflict: conflict with "fm1": .data.a',
          causes: [
            { reason: "FieldManagerConflict", field: ".data.a", message: 'conflict with "fm1"' },
          ],
        },
        configMap({ data: { a: "2" } }),
      ),
      applyPatch(
        `${one}?fieldManager=fm2`,
        {
          code: 409,
          message: 'Apply failed with 2 conflicts: conflicts with "fm1":\n- .data.a\n- .data.b',
        },
        configMap({ data: { a: "2", b: "2" } }),
      ),
    ],
  },
  {
    name: "apply with a stale resourceVersion: 409",
    steps: [
      create,
      touch,
      applyPatch(`${one}?fieldManager=fm1`, stale, (seen) =>
        configMap({ data: { b: "1" } }, { resourceVersion: versionIn(seen, "made") }),
      ),
    ],
  },
  {
    name: "apply with resourceVersion 1 to a missing name creates it",
    steps: [
      applyPatch(
        `${one}?fieldManager=fm1`,
        201,
        configMap({ data: { b: "1" } }, { resourceVersion: "1" }),
      ),
    ],
  },
  {
    name: "apply with another uid: 422 if the object exists, 409 if it does not",
    steps: [
      applyPatch(
        `${one}?fieldManager=fm1`,
        {
          code: 409,
          reason: "Conflict",
          message: `Operation cannot be fulfilled on configmaps "{o}": uid mismatch: the provided object specified uid ${another}, and no existing object was found`,
        },
        configMap({ data: { b: "1" } }, { uid: another }),
      ),
      create,
      applyPatch(
        `${one}?fieldManager=fm1`,
        { code: 422, reason: "Invalid", causes: [UID_CAUSE, UID_CAUSE] },
        configMap({ data: { b: "1" } }, { uid: another }),
      ),
    ],
  },
  {
    name: "DELETE with another uid or a stale version in its preconditions: 409",
    steps: [
      create,
      touch,
      remove(
        one,
        { code: 409, reason: "Conflict", message: /the UID in the precondition/ },
        { body: { preconditions: { uid: another } } },
      ),
      remove(
        one,
        { code: 409, reason: "Conflict", message: /the ResourceVersion in the precondition/ },
        { body: (seen) => ({ preconditions: { resourceVersion: versionIn(seen, "made") } }) },
      ),
      remove(
        one,
        {
          code: 200,
          body: { kind: "Status", status: "Success", details: { name: "{o}", kind: "configmaps" } },
        },
        {
          body: (seen) => ({
            preconditions: {
              uid: uidIn(seen, "made"),
              resourceVersion: versionIn(seen, "touched"),
            },
          }),
        },
      ),
    ],
  },
  {
    name: "GET with an older resourceVersion returns that version or a later one",
    steps: [
      create,
      touch,
      {
        send: (seen) => `GET ${one}?resourceVersion=${versionIn(seen, "touched")}`,
        expect: { code: 200, version: { sameAs: "touched" } },
      },
      get(one, { code: 200, version: { sameAs: "touched" } }),
    ],
  },
  {
    name: "GET with a far future version: 504 after a wait",
    waits: true,
    steps: [
      create,
      get(`${one}?resourceVersion=4000000000`, {
        code: 504,
        reason: "Timeout",
        message: /^Timeout: Too large resource version: 4000000000, current: \d+$/,
        causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
        body: { details: { retryAfterSeconds: 1 } },
        headers: { "retry-after": /^1$/ },
      }),
    ],
  },
  {
    name: "invalid bodies",
    steps: [
      { send: `POST ${configMaps}`, text: "{", expect: { code: 400, reason: "BadRequest" } },
      { send: `POST ${configMaps}`, text: '{"a": }', expect: { code: 400, reason: "BadRequest" } },
      { send: `POST ${configMaps}`, text: "[]", expect: { code: 400, reason: "BadRequest" } },
      post(
        configMaps,
        { code: 400, reason: "BadRequest", message: /json: cannot unmarshal number/ },
        configMap({ data: { a: 1 } }),
      ),
      post(
        configMaps,
        { code: 400, reason: "BadRequest", message: /json: cannot unmarshal array/ },
        configMap({ data: ["a"] }),
      ),
      post(configMaps, { code: 400, reason: "BadRequest" }, { ...configMap(), kind: "Secret" }),
      post(configMaps, { code: 400, reason: "BadRequest" }, { ...configMap(), apiVersion: "v2" }),
      post(
        configMaps,
        { code: 400, reason: "BadRequest" },
        configMap({}, { namespace: "elsewhere" }),
      ),
    ],
  },
  {
    name: "an invalid name: 422 with a cause",
    steps: [
      post(
        configMaps,
        {
          code: 422,
          reason: "Invalid",
          causes: [{ reason: "FieldValueInvalid", field: "metadata.name" }],
        },
        configMap({}, { name: "Not_A_Name" }),
      ),
      post(
        configMaps,
        {
          code: 422,
          reason: "Invalid",
          causes: [{ reason: "FieldValueRequired", field: "metadata.name" }],
        },
        { apiVersion: "v1", kind: "ConfigMap", metadata: {} },
      ),
    ],
  },
  {
    name: "an unknown group: plain text, no Status",
    steps: [
      get("/apis/none.example.com/v1/things", { code: 404, message: /^404 page not found\n$/ }),
      get("/nothing/here", 404),
    ],
  },
  {
    name: "an unknown resource of a known group",
    steps: [
      get("/api/v1/namespaces/{ns}/things", { code: 404, reason: "NotFound" }),
      get("/apis/apps/v1/namespaces/{ns}/things/a", { code: 404, reason: "NotFound" }),
    ],
  },
  {
    name: "PUT on a collection: 405; a patch of type text/plain: 415",
    steps: [
      create,
      put(configMaps, { code: 405, reason: "MethodNotAllowed" }, configMap()),
      post("/api/v1/configmaps", { code: 405, reason: "MethodNotAllowed" }, configMap()),
      post(one, { code: 405, reason: "MethodNotAllowed" }, configMap()),
      {
        send: `PATCH ${one}`,
        text: "{}",
        type: "text/plain",
        expect: { code: 415, reason: "UnsupportedMediaType" },
      },
      {
        send: `POST ${configMaps}`,
        text: "a: b",
        type: "text/plain",
        expect: { code: 415, reason: "UnsupportedMediaType" },
      },
    ],
  },
  {
    name: "every response has an audit id and the uids of its flow schema and priority level",
    steps: [
      get(
        configMaps,
        {
          code: 200,
          headers: {
            "audit-id": /^[0-9a-f-]{36}$/,
            "x-kubernetes-pf-flowschema-uid": /^[0-9a-f-]{36}$/,
            "x-kubernetes-pf-prioritylevel-uid": /^[0-9a-f-]{36}$/,
            "content-type": /^application\/json$/,
          },
        },
        { ignore: ["items", "metadata"] },
      ),
      get(one, {
        code: 404,
        reason: "NotFound",
        headers: { "audit-id": /./, "x-kubernetes-pf-flowschema-uid": /./ },
      }),
    ],
  },
  {
    name: "malformed patches",
    steps: [
      create,
      { send: `PATCH ${one}`, type: MERGE, text: "{", expect: { code: 400, reason: "BadRequest" } },
      {
        send: `PATCH ${one}`,
        type: MERGE,
        text: "[]",
        expect: { code: 400, reason: "BadRequest" },
      },
      {
        send: `PATCH ${one}`,
        type: JSON_PATCH,
        text: "{}",
        expect: { code: 400, reason: "BadRequest" },
      },
      {
        send: `PATCH ${one}`,
        type: STRATEGIC,
        text: "{",
        expect: { code: 400, reason: "BadRequest" },
      },
      jsonPatch(one, 422, [{ op: "frobnicate", path: "/data/a" }]),
      {
        send: `PATCH ${one}?fieldManager=a`,
        type: APPLY,
        text: "{",
        expect: { code: 400, reason: "BadRequest" },
        ignore: ["message"],
      },
      applyPatch(`${one}?fieldManager=a`, { code: 400, reason: "BadRequest" }, {}),
      mergePatch(`${one}?force=true`, { code: 422, reason: "Invalid" }, {}),
      {
        send: `PATCH ${one}`,
        type: MERGE,
        body: { data: { a: 1 } },
        expect: { code: 422, reason: "Invalid", causes: [{ field: "patch" }] },
        // The rejected object is quoted in the order of Go's structs.
        ignore: ["message", "details.causes"],
      },
      mergePatch(`${configMaps}/none`, { code: 404, reason: "NotFound" }, {}),
    ],
  },
];
