import { z } from "zod";
import { oneOf } from "./query-fields.ts";
import { requestedClassSchema } from "./reconcile-api.ts";
import { ROLES, scopeSchema } from "./token-api.ts";

const BAD_GROUP = "must be a name of a group with 1 to 300 characters";

/** The role and scope of the members of a group of an OIDC provider, in the terms of tokens. */
const groupRoleSchema = z.strictObject({
  group: z.string(BAD_GROUP).min(1, BAD_GROUP).max(300, BAD_GROUP),
  role: z.enum(ROLES, oneOf(ROLES)),
  scope: scopeSchema.default({}),
  /** The classes of requests that the members may make. Default: all. */
  classes: z
    .array(requestedClassSchema)
    .min(1, "must not be empty; omit the field to allow all")
    .optional(),
});
const groupRolesSchema = z
  .array(groupRoleSchema, "must be a list")
  .min(1, "must have an entry")
  .max(500, "must have at most 500 entries");

export type GroupRole = z.output<typeof groupRoleSchema>;
export type GroupRoleInput = z.input<typeof groupRoleSchema>;

const EXAMPLE = '[{"group":"platform","role":"admin"}]';

/** Reads the list, or its JSON from the environment. Reports the number of an invalid entry. */
export function parseGroupRoles(
  given: string | readonly GroupRoleInput[],
  { addIssue }: Pick<z.RefinementCtx, "addIssue">,
): GroupRole[] {
  const report = (message: string) => addIssue({ code: "custom", message, input: "" });
  let list: unknown = given;
  try {
    if (typeof given === "string") list = JSON.parse(given);
  } catch {
    report(`must be JSON such as ${EXAMPLE}`);
    return [];
  }
  const parsed = groupRolesSchema.safeParse(list);
  for (const { path, message } of parsed.error?.issues ?? []) {
    const [at, ...fields] = path;
    const field = fields.length === 0 ? "" : `${fields.join(".")} `;
    report(typeof at === "number" ? `entry ${at + 1}: ${field}${message}` : message);
  }
  return parsed.data ?? [];
}

const LOOPBACK: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];

/** True for HTTPS, and for HTTP to this machine. */
export function isPrivateUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === "https:" || (protocol === "http:" && LOOPBACK.includes(hostname));
}

/** Path of the page to which the provider returns the browser, below the address of the dashboard. */
export const CALLBACK_PATH = "auth/callback";

/** True for the address of a page without credentials, query and fragment. */
export function isPlainUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { username, password, search, hash } = new URL(text);
  return `${username}${password}${search}${hash}` === "" && !/[?#]/.test(text);
}
