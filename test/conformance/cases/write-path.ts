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

const create = {
  send: `POST ${configMaps}`,
  body: configMap({ data: { a: "1" } }),
  as: "made",
  expect: { code: 201 },
};
const another = "11111111-2222-3333-4444-555555555555";
/** Makes the version in `made` stale. */
const touch = {
  send: `PATCH ${configMaps}/{o}`,
  type: MERGE,
  body: { data: { touched: "yes" } },
  as: "touched",
  expect: { code: 200, version: { newSince: "made" } },
};
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
      { send: `POST ${gadgets}`, body: gadget({ list: [{ kept: null }] }), expect: { code: 201 } },
      {
        send: `PATCH ${gadgets}/{o}`,
        type: MERGE,
        body: { other: 1 },
        expect: { code: 200, body: { list: [{ kept: null }] } },
      },
      {
        send: `PATCH ${gadgets}/{o}`,
        type: MERGE,
        body: { list: [{ a: null, b: [{ c: null, d: 1 }, [{ e: null }]] }, null] },
        expect: { code: 200, body: { list: [{ b: [{ d: 1 }, [{}]] }, null] } },
      },
    ],
  },
  {
    name: "JSON Patch with a failing test: 422 without causes",
    steps: [
      create,
      {
        send: `PATCH ${one}`,
        type: JSON_PATCH,
        body: [
          { op: "test", path: "/data/a", value: "2" },
          { op: "replace", path: "/data/a", value: "3" },
        ],
        expect: {
          code: 422,
          reason: "Invalid",
          message: REFUSED,
          causes: [],
          body: { details: {} },
        },
      },
      {
        send: `GET ${one}`,
        expect: { code: 200, version: { sameAs: "made" }, body: { data: { a: "1" } } },
      },
    ],
  },
  {
    name: "JSON Patch that removes a missing path: the same 422",
    steps: [
      create,
      {
        send: `PATCH ${one}`,
        type: JSON_PATCH,
        body: [{ op: "remove", path: "/data/none" }],
        expect: { code: 422, reason: "Invalid", message: REFUSED, causes: [] },
      },
    ],
  },
  {
    name: "JSON Patch: test of a missing path against null succeeds",
    steps: [
      create,
      {
        send: `PATCH ${one}`,
        type: JSON_PATCH,
        body: [
          { op: "test", path: "/data/none", value: null },
          { op: "add", path: "/data/b", value: "2" },
        ],
        expect: { code: 200, version: { newSince: "made" }, body: { data: { a: "1", b: "2" } } },
      },
    ],
  },
  {
    name: "JSON Patch: test of a path with a missing parent: 422, even against null",
    steps: [
      create,
      {
        send: `PATCH ${one}`,
        type: JSON_PATCH,
        body: [{ op: "test", path: "/binaryData/none", value: null }],
        expect: { code: 422, reason: "Invalid", message: REFUSED, causes: [] },
      },
      {
        send: `PATCH ${one}`,
        type: JSON_PATCH,
        body: [{ op: "test", path: "/data/a/none", value: null }],
        expect: { code: 422, reason: "Invalid", message: REFUSED, causes: [] },
      },
      {
        send: `PATCH ${one}`,
        type: JSON_PATCH,
        body: [
          { op: "test", path: "/binaryData", value: null },
          { op: "test", path: "/data/none", value: null },
          { op: "add", path: "/binaryData", value: { b: "Yg==" } },
        ],
        expect: { code: 200, body: { binaryData: { b: "Yg==" } } },
      },
    ],
  },
  {
    name: "JSON Patch: test of a missing list item: 422, even against null",
    steps: [
      {
        send: `POST ${configMaps}`,
        body: configMap({ data: { a: "1" } }, { finalizers: ["example.com/a"] }),
        expect: { code: 201 },
      },
      ...["1", "-", "-1", "none", "00", ""].map((part) => ({
        send: `PATCH ${one}`,
        type: JSON_PATCH,
        body: [{ op: "test", path: `/metadata/finalizers/${part}`, value: null }],
        expect: { code: 422, reason: "Invalid", message: REFUSED, causes: [] },
      })),
      {
        send: `PATCH ${one}`,
        type: JSON_PATCH,
        body: [
          { op: "test", path: "/metadata/finalizers/0", value: "example.com/a" },
          { op: "remove", path: "/metadata/finalizers/0" },
        ],
        expect: { code: 200 },
      },
    ],
  },
  {
    name: "JSON Patch: test of an object ignores the order of its members",
    steps: [
      {
        send: `POST ${configMaps}`,
        body: configMap({ data: { a: "1", b: "2" } }),
        expect: { code: 201 },
      },
      {
        send: `PATCH ${one}`,
        type: JSON_PATCH,
        body: [
          { op: "test", path: "/data", value: { b: "2", a: "1" } },
          { op: "replace", path: "/data/a", value: "3" },
        ],
        expect: { code: 200, body: { data: { a: "3", b: "2" } } },
      },
      {
        send: `PATCH ${one}`,
        type: JSON_PATCH,
        body: [{ op: "test", path: "/data", value: { a: "3" } }],
        expect: { code: 422, message: REFUSED },
      },
      {
        send: `PATCH ${one}`,
        type: JSON_PATCH,
        body: [{ op: "test", path: "/data", value: { a: "3", b: "2", c: null } }],
        expect: { code: 422, message: REFUSED },
      },
    ],
  },
  {
    name: "JSON Patch: the text of a test must be encoded as by Go's encoder",
    steps: [
      {
        send: `POST ${configMaps}`,
        body: configMap({ data: { a: TEXT, plain: PLAIN } }),
        expect: { code: 201 },
      },
      {
        send: `PATCH ${one}`,
        type: JSON_PATCH,
        body: [{ op: "test", path: "/data/plain", value: PLAIN }],
        expect: { code: 200 },
      },
      {
        send: `PATCH ${one}`,
        type: JSON_PATCH,
        body: [{ op: "test", path: "/data/a", value: TEXT }],
        expect: { code: 422, reason: "Invalid", message: REFUSED, causes: [] },
      },
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
      {
        send: `PATCH ${one}`,
        type: JSON_PATCH,
        body: (seen) => [
          { op: "test", path: "/metadata/resourceVersion", value: versionIn(seen, "made") },
          { op: "add", path: "/data/b", value: "2" },
        ],
        expect: { code: 422, reason: "Invalid", message: REFUSED },
      },
    ],
  },
  {
    name: "JSON Patch: replacing resourceVersion with a stale one is 409",
    steps: [
      create,
      touch,
      {
        send: `PATCH ${one}`,
        type: JSON_PATCH,
        body: (seen) => [
          { op: "replace", path: "/metadata/resourceVersion", value: versionIn(seen, "made") },
          { op: "add", path: "/data/b", value: "2" },
        ],
        expect: stale,
      },
      {
        send: `PATCH ${one}`,
        type: JSON_PATCH,
        body: (seen) => [
          { op: "replace", path: "/metadata/resourceVersion", value: versionIn(seen, "touched") },
          { op: "add", path: "/data/b", value: "2" },
        ],
        expect: { code: 200, body: { data: { b: "2" } } },
      },
    ],
  },
  {
    name: "JSON Patch with copy, move and list indexes",
    steps: [
      {
        send: `POST ${configMaps}`,
        body: configMap({ data: { a: "1" } }, { finalizers: ["example.com/a", "example.com/b"] }),
        expect: { code: 201 },
      },
      {
        send: `PATCH ${one}`,
        type: JSON_PATCH,
        body: [
          { op: "copy", from: "/data/a", path: "/data/b" },
          { op: "move", from: "/data/a", path: "/data/c" },
          { op: "remove", path: "/metadata/finalizers/0" },
          { op: "add", path: "/metadata/finalizers/-", value: "example.com/c" },
          { op: "add", path: "/metadata/labels", value: { "a~b": "x" } },
          { op: "replace", path: "/metadata/labels/a~0b", value: "y" },
        ],
        expect: { code: 422, reason: "Invalid" },
      },
      {
        send: `PATCH ${one}`,
        type: JSON_PATCH,
        body: [
          { op: "copy", from: "/data/a", path: "/data/b" },
          { op: "move", from: "/data/a", path: "/data/c" },
          { op: "remove", path: "/metadata/finalizers/0" },
          { op: "add", path: "/metadata/finalizers/-", value: "example.com/c" },
        ],
        expect: {
          code: 200,
          body: {
            data: { b: "1", c: "1" },
            metadata: { finalizers: ["example.com/b", "example.com/c"] },
          },
          absent: ["data.a"],
        },
      },
      {
        send: `PATCH ${one}`,
        type: MERGE,
        body: { metadata: { finalizers: null } },
        expect: { code: 200, absent: ["metadata.finalizers"] },
      },
    ],
  },
  {
    name: "merge patch with a stale resourceVersion: 409",
    steps: [
      create,
      touch,
      {
        send: `PATCH ${one}`,
        type: MERGE,
        body: (seen) => ({
          metadata: { resourceVersion: versionIn(seen, "made") },
          data: { b: "2" },
        }),
        expect: stale,
      },
    ],
  },
  {
    name: "merge patch without resourceVersion never conflicts",
    steps: [
      create,
      touch,
      {
        send: `PATCH ${one}`,
        type: MERGE,
        body: { data: { b: "2", a: null } },
        expect: { code: 200, body: { data: { b: "2", touched: "yes" } }, absent: ["data.a"] },
      },
    ],
  },
  {
    name: "merge patch with the right version and another uid: 422 for metadata.uid",
    steps: [
      create,
      {
        send: `PATCH ${one}`,
        type: MERGE,
        body: (seen) => ({
          metadata: { resourceVersion: versionIn(seen, "made"), uid: another },
          data: { b: "2" },
        }),
        expect: {
          code: 422,
          reason: "Invalid",
          causes: [UID_CAUSE, UID_CAUSE],
          message: /field is immutable/,
        },
      },
    ],
  },
  {
    name: "a merge patch without a change keeps the version",
    steps: [
      create,
      {
        send: `PATCH ${one}`,
        type: MERGE,
        body: { data: { a: "1" } },
        expect: { code: 200, version: { sameAs: "made" } },
      },
    ],
  },
  {
    name: "an apply without a change keeps the version",
    steps: [
      {
        send: `PATCH ${one}?fieldManager=fm1`,
        type: APPLY,
        body: configMap({ data: { a: "1" } }),
        as: "made",
        expect: { code: 201 },
      },
      {
        send: `PATCH ${one}?fieldManager=fm1`,
        type: APPLY,
        body: configMap({ data: { a: "1" } }),
        expect: { code: 200, version: { sameAs: "made" } },
      },
    ],
  },
  {
    name: "a PUT without a change keeps the version",
    steps: [
      create,
      {
        send: `PUT ${one}`,
        body: (seen) => seen["made"]?.body ?? null,
        expect: { code: 200, version: { sameAs: "made" } },
      },
    ],
  },
  {
    name: "PUT with a stale resourceVersion: 409",
    steps: [
      create,
      touch,
      {
        send: `PUT ${one}`,
        body: (seen) =>
          configMap({ data: { a: "9" } }, { resourceVersion: versionIn(seen, "made") }),
        expect: { ...stale, body: { details: { name: "{o}", kind: "configmaps" } } },
      },
    ],
  },
  {
    name: "PUT without resourceVersion overwrites a ConfigMap",
    steps: [
      create,
      touch,
      {
        send: `PUT ${one}`,
        body: configMap({ data: { z: "9" } }),
        expect: { code: 200, version: { newSince: "touched" }, absent: ["data.a", "data.touched"] },
      },
    ],
  },
  {
    name: "PUT with another uid: 409 from the storage",
    steps: [
      create,
      {
        send: `PUT ${one}`,
        body: (seen) =>
          configMap(
            { data: { z: "9" } },
            { resourceVersion: versionIn(seen, "made"), uid: another },
          ),
        expect: { code: 409, reason: "Conflict", message: /StorageError: invalid object/ },
      },
    ],
  },
  {
    name: "PUT to a missing name: 404",
    steps: [
      {
        send: `PUT ${one}`,
        body: configMap({ data: { a: "1" } }),
        expect: { code: 404, reason: "NotFound", message: 'configmaps "{o}" not found' },
      },
    ],
  },
  {
    name: "POST of an existing name: 409 AlreadyExists",
    steps: [
      create,
      {
        send: `POST ${configMaps}`,
        body: configMap(),
        expect: { code: 409, reason: "AlreadyExists", message: 'configmaps "{o}" already exists' },
      },
    ],
  },
  {
    name: "apply against another manager's field: 409 with the manager and field",
    steps: [
      {
        send: `PATCH ${one}?fieldManager=fm1`,
        type: APPLY,
        body: configMap({ data: { a: "1", b: "1" } }),
        expect: { code: 201 },
      },
      {
        send: `PATCH ${one}?fieldManager=fm2`,
        type: APPLY,
        body: configMap({ data: { a: "2" } }),
        expect: {
          code: 409,
          reason: "Conflict",
          message: 'Apply failed with 1 conflict: conflict with "fm1": .data.a',
          causes: [
            { reason: "FieldManagerConflict", field: ".data.a", message: 'conflict with "fm1"' },
          ],
        },
      },
      {
        send: `PATCH ${one}?fieldManager=fm2`,
        type: APPLY,
        body: configMap({ data: { a: "2", b: "2" } }),
        expect: {
          code: 409,
          message: 'Apply failed with 2 conflicts: conflicts with "fm1":\n- .data.a\n- .data.b',
        },
      },
    ],
  },
  {
    name: "apply with a stale resourceVersion: 409",
    steps: [
      create,
      touch,
      {
        send: `PATCH ${one}?fieldManager=fm1`,
        type: APPLY,
        body: (seen) =>
          configMap({ data: { b: "1" } }, { resourceVersion: versionIn(seen, "made") }),
        expect: stale,
      },
    ],
  },
  {
    name: "apply with resourceVersion 1 to a missing name creates it",
    steps: [
      {
        send: `PATCH ${one}?fieldManager=fm1`,
        type: APPLY,
        body: configMap({ data: { b: "1" } }, { resourceVersion: "1" }),
        expect: { code: 201 },
      },
    ],
  },
  {
    name: "apply with another uid: 422 if the object exists, 409 if it does not",
    steps: [
      {
        send: `PATCH ${one}?fieldManager=fm1`,
        type: APPLY,
        body: configMap({ data: { b: "1" } }, { uid: another }),
        expect: {
          code: 409,
          reason: "Conflict",
          message: `Operation cannot be fulfilled on configmaps "{o}": uid mismatch: the provided object specified uid ${another}, and no existing object was found`,
        },
      },
      create,
      {
        send: `PATCH ${one}?fieldManager=fm1`,
        type: APPLY,
        body: configMap({ data: { b: "1" } }, { uid: another }),
        expect: { code: 422, reason: "Invalid", causes: [UID_CAUSE, UID_CAUSE] },
      },
    ],
  },
  {
    name: "DELETE with another uid or a stale version in its preconditions: 409",
    steps: [
      create,
      touch,
      {
        send: `DELETE ${one}`,
        body: { preconditions: { uid: another } },
        expect: { code: 409, reason: "Conflict", message: /the UID in the precondition/ },
      },
      {
        send: `DELETE ${one}`,
        body: (seen) => ({ preconditions: { resourceVersion: versionIn(seen, "made") } }),
        expect: {
          code: 409,
          reason: "Conflict",
          message: /the ResourceVersion in the precondition/,
        },
      },
      {
        send: `DELETE ${one}`,
        body: (seen) => ({
          preconditions: { uid: uidIn(seen, "made"), resourceVersion: versionIn(seen, "touched") },
        }),
        expect: {
          code: 200,
          body: { kind: "Status", status: "Success", details: { name: "{o}", kind: "configmaps" } },
        },
      },
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
      { send: `GET ${one}`, expect: { code: 200, version: { sameAs: "touched" } } },
    ],
  },
  {
    name: "GET with a far future version: 504 after a wait",
    steps: [
      create,
      {
        send: `GET ${one}?resourceVersion=4000000000`,
        expect: {
          code: 504,
          reason: "Timeout",
          message: /^Timeout: Too large resource version: 4000000000, current: \d+$/,
          causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
          body: { details: { retryAfterSeconds: 1 } },
          headers: { "retry-after": /^1$/ },
        },
      },
    ],
  },
  {
    name: "invalid bodies",
    steps: [
      { send: `POST ${configMaps}`, text: "{", expect: { code: 400, reason: "BadRequest" } },
      { send: `POST ${configMaps}`, text: '{"a": }', expect: { code: 400, reason: "BadRequest" } },
      { send: `POST ${configMaps}`, text: "[]", expect: { code: 400, reason: "BadRequest" } },
      {
        send: `POST ${configMaps}`,
        body: configMap({ data: { a: 1 } }),
        expect: { code: 400, reason: "BadRequest", message: /json: cannot unmarshal number/ },
      },
      {
        send: `POST ${configMaps}`,
        body: configMap({ data: ["a"] }),
        expect: { code: 400, reason: "BadRequest", message: /json: cannot unmarshal array/ },
      },
      {
        send: `POST ${configMaps}`,
        body: { ...configMap(), kind: "Secret" },
        expect: { code: 400, reason: "BadRequest" },
      },
      {
        send: `POST ${configMaps}`,
        body: { ...configMap(), apiVersion: "v2" },
        expect: { code: 400, reason: "BadRequest" },
      },
      {
        send: `POST ${configMaps}`,
        body: configMap({}, { namespace: "elsewhere" }),
        expect: { code: 400, reason: "BadRequest" },
      },
    ],
  },
  {
    name: "an invalid name: 422 with a cause",
    steps: [
      {
        send: `POST ${configMaps}`,
        body: configMap({}, { name: "Not_A_Name" }),
        expect: {
          code: 422,
          reason: "Invalid",
          causes: [{ reason: "FieldValueInvalid", field: "metadata.name" }],
        },
      },
      {
        send: `POST ${configMaps}`,
        body: { apiVersion: "v1", kind: "ConfigMap", metadata: {} },
        expect: {
          code: 422,
          reason: "Invalid",
          causes: [{ reason: "FieldValueRequired", field: "metadata.name" }],
        },
      },
    ],
  },
  {
    name: "an unknown group: plain text, no Status",
    steps: [
      {
        send: "GET /apis/none.example.com/v1/things",
        expect: { code: 404, message: /^404 page not found\n$/ },
      },
      { send: "GET /nothing/here", expect: { code: 404 } },
    ],
  },
  {
    name: "an unknown resource of a known group",
    steps: [
      { send: "GET /api/v1/namespaces/{ns}/things", expect: { code: 404, reason: "NotFound" } },
      {
        send: "GET /apis/apps/v1/namespaces/{ns}/things/a",
        expect: { code: 404, reason: "NotFound" },
      },
    ],
  },
  {
    name: "PUT on a collection: 405; a patch of type text/plain: 415",
    steps: [
      create,
      {
        send: `PUT ${configMaps}`,
        body: configMap(),
        expect: { code: 405, reason: "MethodNotAllowed" },
      },
      {
        send: "POST /api/v1/configmaps",
        body: configMap(),
        expect: { code: 405, reason: "MethodNotAllowed" },
      },
      { send: `POST ${one}`, body: configMap(), expect: { code: 405, reason: "MethodNotAllowed" } },
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
      {
        send: `GET ${configMaps}`,
        ignore: ["items", "metadata"],
        expect: {
          code: 200,
          headers: {
            "audit-id": /^[0-9a-f-]{36}$/,
            "x-kubernetes-pf-flowschema-uid": /^[0-9a-f-]{36}$/,
            "x-kubernetes-pf-prioritylevel-uid": /^[0-9a-f-]{36}$/,
            "content-type": /^application\/json$/,
          },
        },
      },
      {
        send: `GET ${one}`,
        expect: {
          code: 404,
          reason: "NotFound",
          headers: { "audit-id": /./, "x-kubernetes-pf-flowschema-uid": /./ },
        },
      },
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
      {
        send: `PATCH ${one}`,
        type: JSON_PATCH,
        body: [{ op: "frobnicate", path: "/data/a" }],
        expect: { code: 422 },
      },
      {
        send: `PATCH ${one}?fieldManager=a`,
        type: APPLY,
        text: "{",
        expect: { code: 400, reason: "BadRequest" },
        ignore: ["message"],
      },
      {
        send: `PATCH ${one}?fieldManager=a`,
        type: APPLY,
        body: {},
        expect: { code: 400, reason: "BadRequest" },
      },
      {
        send: `PATCH ${one}?force=true`,
        type: MERGE,
        body: {},
        expect: { code: 422, reason: "Invalid" },
      },
      {
        send: `PATCH ${one}`,
        type: MERGE,
        body: { data: { a: 1 } },
        expect: { code: 422, reason: "Invalid", causes: [{ field: "patch" }] },
        // The rejected object is quoted in the order of Go's structs.
        ignore: ["message", "details.causes"],
      },
      {
        send: `PATCH ${configMaps}/none`,
        type: MERGE,
        body: {},
        expect: { code: 404, reason: "NotFound" },
      },
    ],
  },
];
