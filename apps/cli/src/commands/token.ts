import type { QueueAccess } from "@konverge/api";
import {
  duration,
  newTokenSchema,
  readSettings,
  ROLES,
  type NewToken,
  type TokenView,
} from "@konverge/contracts";
import { defined, isKonvergeError, KonvergeError } from "@konverge/core";
import { Option, type Command } from "commander";
import { age } from "../text/age.ts";
import { columns } from "../text/columns.ts";
import { explainFailure } from "../process/explain-failure.ts";
import { print, withOutput, type Output } from "../text/output.ts";
import { systemUser } from "../ask/system-user.ts";

interface ShowFlags {
  readonly output: Output;
}
interface CreateFlags extends ShowFlags {
  readonly role: NewToken["role"];
  readonly cluster?: string[];
  readonly controller?: string[];
  readonly namespace?: string[];
  readonly expires?: string;
  readonly by?: string;
}

const HELP = `
Tokens are for the HTTP API and the dashboard. They are made where Redis can be reached (KONVERGE_REDIS_URL,
KONVERGE_PREFIX), not over HTTP. A token is shown once, on standard output; Redis has its SHA-256 only.

  konverge token create ci --role operator -n shop -n shop-staging --expires 90d
  konverge token create wall-screen --role viewer > /run/secrets/konverge
  konverge token list
  konverge token revoke ci

viewer reads; operator also requests, pauses, releases and orders guards; admin also reads the audit log. Whoever
holds a token that was revoked is let in for one more second.
Exit codes: 0 done, 2 something to correct in what was typed or set, 3 no such token, 6 Redis is away.`;

export function addTokenCommand(program: Command): void {
  const token = program
    .command("token")
    .description("who may use the HTTP API and the dashboard, and for what")
    .addHelpText("after", HELP);

  withOutput(token.command("create").description("make a token, and show it once"))
    .argument("<name>", "whose it is; the author of all that is ordered with it")
    .addOption(new Option("--role <role>", "what it may do").choices(ROLES).makeOptionMandatory())
    .option("--cluster <name...>", "only these clusters; default: all")
    .option("--controller <name...>", "only these controllers; default: all")
    .option("-n, --namespace <name...>", "only these namespaces, _ for cluster-scoped objects")
    .option("--expires <duration>", "such as 12h or 90d; default: when it is revoked")
    .option("--by <name>", "who makes it; default: the user of this system")
    .action((name: string, { output, by = systemUser(), ...flags }: CreateFlags) =>
      runWithAccess(async ({ tokens, audit }) => {
        const made = await tokens.create(newTokenOf(name, flags), by);
        const { id, role } = made.view;
        await audit.write({ action: "token.create", by, filter: `${name} (${id}), ${role}` });
        print(output, { document: made, names: [made.token], table: () => made.token });
        process.stderr.write(`${role} "${name}" (${id}); this is shown once\n`);
      }),
    );
  withOutput(token.command("list").description("all tokens, and when each was last used")).action(
    ({ output }: ShowFlags) =>
      runWithAccess(async ({ tokens }) => {
        const items = await tokens.list();
        print(output, {
          document: { items },
          items,
          names: items.map(({ id }) => id),
          table: () => tokenRows(items),
          empty: "no token",
        });
      }),
  );
  withOutput(token.command("revoke").description("let nobody in with a token any more"))
    .argument("<token>", "its id or name")
    .option("--by <name>", "who revokes it; default: the user of this system")
    .action((named: string, { output, by = systemUser() }: ShowFlags & { readonly by?: string }) =>
      runWithAccess(async ({ tokens, audit }) => {
        const items = await tokens.revoke(named);
        for (const { id, name } of items) {
          await audit.write({ action: "token.revoke", by, filter: `${name} (${id})` });
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

/** @throws KonvergeError `invalid_request`, in the words of the options */
function newTokenOf(name: string, flags: Omit<CreateFlags, "output" | "by">): NewToken {
  const { role, cluster, controller, namespace, expires } = flags;
  const issues: string[] = [];
  const ttl = expires === undefined ? undefined : duration.safeParse(expires);
  if (ttl?.success === false) issues.push(`--expires: ${ttl.error.issues[0]?.message ?? ""}`);
  const parsed = newTokenSchema.safeParse({
    name,
    role,
    scope: {
      ...defined({ clusters: cluster, controllers: controller, namespaces: namespace }),
    },
    ...(ttl?.success === true ? { ttlMs: ttl.data } : {}),
  });
  const where: Readonly<Record<string, string>> = {
    name: "<name>",
    clusters: "--cluster",
    controllers: "--controller",
    namespaces: "--namespace",
    ttlMs: "--expires",
  };
  for (const { path, message } of parsed.error?.issues ?? []) {
    const field = path.find((part) => String(part) in where);
    issues.push(`${where[String(field)] ?? String(field)}: ${message}`);
  }
  if (parsed.success && issues.length === 0) return parsed.data;
  throw new KonvergeError("invalid_request", issues.join("; "));
}

async function runWithAccess(work: (access: QueueAccess) => Promise<void>): Promise<void> {
  let redisUrl: string | undefined;
  try {
    const settings = readSettings({ env: process.env });
    ({ redisUrl } = settings);
    // What happens to the connection is told by the call that needed it.
    const onError = () => undefined;
    const { openQueueAccess } = await import("@konverge/api");
    const access = openQueueAccess({ redisUrl, prefix: settings.prefix, onError });
    try {
      await work(access);
    } finally {
      await access.close();
    }
  } catch (thrown) {
    if (!isKonvergeError(thrown)) throw thrown;
    const { line, exitCode } = explainFailure(thrown, { redisUrl, options: {} });
    process.stderr.write(`konverge: ${line}\n`);
    // Not exitCode: the client of a Redis that is away lives on for two seconds after it was told to end.
    process.exit(exitCode);
  }
}

function tokenRows(items: readonly TokenView[]): string {
  const rows = items.map(({ id, name, role, scope, createdBy, expiresAt, lastUsedAt }) => {
    const limits = Object.entries(scope).map(
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
