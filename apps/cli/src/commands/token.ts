import {
  duration,
  newTokenSchema,
  REQUEST_CLASSES,
  ROLES,
  type NewToken,
  type TokenView,
} from "@konverge/contracts";
import { defined, KonvergeError } from "@konverge/core";
import { Option, type Command } from "commander";
import { age } from "../text/age.ts";
import { columns } from "../text/columns.ts";
import { print, withOutput, type Output } from "../text/output.ts";
import { runWithAccess } from "../ask/run-with-access.ts";
import { systemUser } from "../ask/system-user.ts";

interface ShowFlags {
  readonly output: Output;
}
interface CreateFlags extends ShowFlags {
  readonly role: NewToken["role"];
  readonly cluster?: string[];
  readonly controller?: string[];
  readonly namespace?: string[];
  readonly kind?: string[];
  readonly classes?: NonNullable<NewToken["classes"]>;
  readonly expires?: string;
  readonly by?: string;
}

const HELP = `
These commands need access to Redis (KONVERGE_REDIS_URL, KONVERGE_PREFIX) and never use HTTP. A token is printed once,
to standard output. Redis stores only its SHA-256 digest.

Examples:
  konverge token create ci --role operator -n shop -n shop-staging --expires 90d
  konverge token create wall-screen --role viewer > /run/secrets/konverge
  konverge token create nightly --role operator --classes background
  konverge token list
  konverge token revoke ci

A viewer reads. An operator also enqueues, pauses, releases and controls guards. An admin also reads the audit log.
A revoked token remains valid for up to one second.
Exit codes: 0 success, 2 invalid input or configuration, 3 token not found, 6 Redis unavailable.`;

export function addTokenCommand(program: Command): void {
  const token = program
    .command("token")
    .description("Manage tokens for the HTTP API and dashboard")
    .addHelpText("after", HELP);
  addCreate(token);
  addList(token);
  addRevoke(token);
}

function addCreate(token: Command): void {
  withOutput(token.command("create").description("Create a token and show it once"))
    .argument("<name>", "Token name; the author of all actions with this token")
    .addOption(
      new Option("--role <role>", "Role of the token (required)")
        .choices(ROLES)
        .makeOptionMandatory(),
    )
    .option("--cluster <name...>", "Allowed clusters (default: all)")
    .option("--controller <name...>", "Allowed controllers (default: all)")
    .option(
      "-n, --namespace <name...>",
      "Allowed namespaces; _ for cluster-scoped objects (default: all)",
    )
    .option(
      "--kind <kind...>",
      "Kinds that mutations may change, or fields such as Deployment:/spec/replicas (default: all)",
    )
    .addOption(
      new Option("--classes <class...>", "Allowed classes of requests (default: all)").choices(
        REQUEST_CLASSES,
      ),
    )
    .option("--expires <duration>", "Lifetime, such as 12h or 90d (default: unlimited)")
    .option("--by <name>", "Author (default: system user)")
    .action((name: string, { output, by = systemUser(), ...flags }: CreateFlags) =>
      runWithAccess(async ({ tokens, audit }) => {
        const made = await tokens.create(newTokenOf(name, flags), by);
        const { id, role } = made.view;
        await audit.record({ action: "token.create", by, filter: `${name} (${id}), ${role}` });
        print(output, { document: made, names: [made.token], table: () => made.token });
        process.stderr.write(`${role} "${name}" (${id}); the token is shown only once\n`);
      }),
    );
}

function addList(token: Command): void {
  withOutput(
    token.command("list").description("List tokens with the time of their last use"),
  ).action(({ output }: ShowFlags) =>
    runWithAccess(async ({ tokens }) => {
      const [items, unreadable] = await Promise.all([tokens.list(), tokens.listUnreadable()]);
      for (const { id, name } of unreadable) {
        const fix = `revoke it with \`konverge token revoke ${id}\`, or upgrade`;
        process.stderr.write(`token "${name}" (${id}) was created by another version; ${fix}\n`);
      }
      print(output, {
        document: { items },
        items,
        names: items.map(({ id }) => id),
        table: () => tokenRows(items),
        empty: "no tokens found",
      });
    }),
  );
}

function addRevoke(token: Command): void {
  withOutput(token.command("revoke").description("Revoke a token"))
    .argument("<token>", "Token ID or name")
    .option("--by <name>", "Author (default: system user)")
    .action((named: string, { output, by = systemUser() }: ShowFlags & { readonly by?: string }) =>
      runWithAccess(async ({ tokens, audit }) => {
        const items = await tokens.revoke(named);
        for (const { id, name } of items) {
          await audit.record({ action: "token.revoke", by, filter: `${name} (${id})` });
        }
        print(output, {
          document: { items },
          items,
          names: items.map(({ id }) => id),
          table: () => items.map(({ id, name }) => `revoked "${name}" (${id})`).join("\n"),
        });
      }),
    );
}

/** @throws KonvergeError `invalid_request`, which names the options */
function newTokenOf(name: string, flags: Omit<CreateFlags, "output" | "by">): NewToken {
  const { role, cluster, controller, namespace, kind, classes, expires } = flags;
  const issues: string[] = [];
  const ttl = expires === undefined ? undefined : duration.safeParse(expires);
  if (ttl?.success === false) issues.push(`--expires: ${ttl.error.issues[0]?.message ?? ""}`);
  const parsed = newTokenSchema.safeParse({
    name,
    role,
    scope: {
      ...defined({
        clusters: cluster,
        controllers: controller,
        namespaces: namespace,
        kinds: kind,
      }),
    },
    ...defined({ classes }),
    ...(ttl?.success === true ? { ttlMs: ttl.data } : {}),
  });
  const where: Readonly<Record<string, string>> = {
    name: "<name>",
    clusters: "--cluster",
    controllers: "--controller",
    namespaces: "--namespace",
    kinds: "--kind",
    classes: "--classes",
    ttlMs: "--expires",
  };
  for (const { path, message } of parsed.error?.issues ?? []) {
    const field = path.find((part) => String(part) in where);
    issues.push(`${where[String(field)] ?? String(field)}: ${message}`);
  }
  if (parsed.success && issues.length === 0) return parsed.data;
  throw new KonvergeError("invalid_request", issues.join("; "));
}

function tokenRows(items: readonly TokenView[]): string {
  const rows = items.map(({ id, name, role, scope, classes, createdBy, expiresAt, lastUsedAt }) => {
    const limits = Object.entries({ ...scope, ...defined({ classes }) }).map(
      ([what, names]) => `${what} ${names?.join(", ") ?? ""}`,
    );
    return [
      name,
      id,
      role,
      limits.join("; ") || "all",
      createdBy,
      expiresAt === undefined ? "never" : age(expiresAt),
      lastUsedAt === undefined ? "never" : `${age(lastUsedAt)} ago`,
    ];
  });
  return columns([["NAME", "ID", "ROLE", "SCOPE", "BY", "EXPIRES", "LAST USED"], ...rows]);
}
