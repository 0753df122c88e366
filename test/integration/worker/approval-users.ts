import { createApi, openQueueAccess, type QueueAccess } from "@konverge/api";
import { createClient, ProblemError, type Client } from "@konverge/client";
import type { Approval, ApprovalDetail } from "@konverge/contracts";
import { openGuardControl } from "@konverge/guard";
import { createMetrics } from "@konverge/telemetry";
import { expect, onTestFinished } from "vitest";
import { unlessRedisIsLate } from "../../support/until.ts";
import type { QueueHarness } from "../queue/queue-harness.ts";
import { namespace } from "./approval-checks.ts";

const ROLES = {
  ada: "operator",
  bob: "operator",
  kim: "operator",
  eve: "admin",
  ian: "admin",
  vic: "viewer",
} as const;
export type UserName = keyof typeof ROLES;
export const USERS = Object.keys(ROLES) as UserName[];

export type Verb = "approve" | "reject";
type Code = ProblemError["code"];

/** A decision as a user has made it. */
export interface Decision {
  readonly user: UserName;
  readonly verb: Verb;
  readonly hash: string;
  readonly answer: Approval | Code;
}

export const own = { cluster: "default", controller: "widgets", namespace, name: "own" };

/** Users with tokens of different roles, and all decisions that they have made. */
export class ApprovalUsers {
  readonly decisions: Decision[] = [];
  readonly admin: Client;
  readonly #access: QueueAccess;
  readonly #clients = new Map<UserName, Client>();

  private constructor(access: QueueAccess, admin: Client) {
    this.#access = access;
    this.admin = admin;
  }

  /** The API is closed after the test. */
  static async open({ prefix, apiTarget: redis }: QueueHarness): Promise<ApprovalUsers> {
    const access = openQueueAccess({ redis, prefix, onError: () => undefined });
    const guards = openGuardControl({ redis, prefix });
    const api = createApi({
      access,
      guards,
      metrics: createMetrics({ version: "test" }),
      token: undefined,
      cluster: "default",
      rate: { ratePerSecond: 100_000, burst: 100_000 },
      onError: (error) => expect.unreachable(String(error)),
    });
    onTestFinished(async () => {
      api.close();
      await Promise.all([access.close(), guards.close()]);
    });
    const open = async (name: string, role: "viewer" | "operator" | "admin") => {
      const { token } = await access.tokens.create({ name, role, scope: {} }, "test");
      const fetch = async (request: Request) => await api.fetch(request);
      return createClient({ server: "http://localhost:7070", fetch, token });
    };
    const users = new ApprovalUsers(access, await open("admin", "admin"));
    for (const name of USERS) users.#clients.set(name, await open(name, ROLES[name]));
    return users;
  }

  can(user: UserName, role: "operator" | "admin"): boolean {
    return ROLES[user] === "admin" || ROLES[user] === role;
  }

  async waiting(): Promise<ApprovalDetail | undefined> {
    try {
      return await unlessRedisIsLate(() => this.admin.approvals.get(own));
    } catch (error) {
      if (error instanceof ProblemError && error.code === "not_found") return undefined;
      throw error;
    }
  }

  /** Returns false if the user may not request. */
  async request(user: UserName): Promise<boolean> {
    if (ROLES[user] === "viewer") return false;
    await this.#clients.get(user)?.objects.reconcile(own);
    return true;
  }

  async decide(user: UserName, verb: Verb, hash: string): Promise<Decision> {
    const client = this.#clients.get(user) as Client;
    const given = { hash, by: user, reason: "random" };
    const answer = await client.approvals[verb](own, given).catch((error) => {
      if (error instanceof ProblemError) return error.code;
      throw error;
    });
    const decision = { user, verb, hash, answer };
    this.decisions.push(decision);
    return decision;
  }

  /** Returns the number of entries of the audit log, and of decisions, by author, action and plan. */
  async audited(): Promise<{ readonly logged: object; readonly made: object }> {
    await this.#access.audit.close();
    const logged = new Tally();
    for await (const entry of this.admin.audit.list()) {
      const { by, action, filter = "", count = 1 } = entry;
      if (action.startsWith("approval.")) logged.add([by, action, filter], count);
      if (action === "refused") logged.add([by, filter.toLowerCase()], count);
    }
    const made = new Tally();
    for (const { user, verb, hash, answer } of this.decisions) {
      if (typeof answer === "object") made.add([user, `approval.${verb}`, hash], 1);
      else made.add([user, `${verb}plan: ${answer}`], 1);
    }
    return { logged: logged.sorted(), made: made.sorted() };
  }
}

class Tally {
  readonly #counts = new Map<string, number>();

  add(parts: readonly string[], count: number): void {
    const id = parts.join(" ");
    this.#counts.set(id, (this.#counts.get(id) ?? 0) + count);
  }

  sorted(): Record<string, number> {
    return Object.fromEntries(
      [...this.#counts].toSorted(([one], [other]) => (one < other ? -1 : 1)),
    );
  }
}
