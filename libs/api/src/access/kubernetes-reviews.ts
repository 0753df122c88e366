import {
  createLocalGate,
  defined,
  KonvergeError,
  takeToken,
  type BucketLimits,
  type JsonObject,
} from "@konverge/core";
import { createKubeClient, type KubeClient, type KubeCredentials } from "@konverge/kube";
import { z } from "zod";
import { AcceptedTokens } from "./accepted-tokens.ts";
import { Buckets } from "./buckets.ts";
import { digest } from "./digest.ts";
import { ShortCache } from "./short-cache.ts";

const REMEMBERED_MS = 10_000;
const MOST_REMEMBERED = 1_000;
const DEFAULT_CALL_MS = 800;
const DEFAULT_RATE: BucketLimits = { ratePerSecond: 100, burst: 200 };
/** The largest batch needs 100 rights at once. */
const DEFAULT_USER_RATE: BucketLimits = { ratePerSecond: 20, burst: 120 };
/** A user can create any number of tokens. */
const MOST_TOKENS_OF_USER = 20;
const FORM = /^[\x21-\x7e]{16,16000}$/;
const AUTHENTICATION = "/apis/authentication.k8s.io/v1/tokenreviews";
const AUTHORIZATION = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/** A user as the API server reports it. */
export interface KubernetesUser {
  readonly username: string;
  readonly uid?: string | undefined;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** A request that a user would make, in the terms of RBAC. */
export interface AskedRight {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  /** Omitted: cluster-scoped, or all namespaces. */
  readonly namespace?: string;
  /** Omitted: all names. */
  readonly name?: string;
}

/** Asks an API server for the user of a token and for the rights of a user. */
export interface KubernetesReviews {
  /** Undefined for a token that is not valid for the audiences. @throws KonvergeError `identity_unavailable` */
  authenticate(token: string): Promise<KubernetesUser | undefined>;
  /** @throws KonvergeError `identity_unavailable` */
  isAllowed(user: KubernetesUser, right: AskedRight): Promise<boolean>;
  close(): Promise<void>;
}

const tokenReviewSchema = z.object({
  status: z.object({
    authenticated: z.boolean().default(false),
    audiences: z.array(z.string()).default([]),
    user: z
      .object({
        // Empty for a rejected token.
        username: z.string().default(""),
        uid: z.string().optional(),
        groups: z.array(z.string()).default([]),
        extra: z.record(z.string(), z.array(z.string())).default({}),
      })
      .optional(),
  }),
});

const accessReviewSchema = z.object({
  status: z.object({ allowed: z.boolean(), denied: z.boolean().default(false) }),
});

/** Tokens are sent to the API server only. They are neither stored nor logged; the caches have digests. */
export function createKubernetesReviews(options: {
  readonly credentials: KubeCredentials;
  readonly audiences: readonly string[];
  /** Longest time of a call, in ms. Default 800, so that an unavailable server is reported within a second. */
  readonly callMs?: number;
  /** Longest time that a revoked token or a withdrawn right remains valid. Default 10,000. */
  readonly keptMs?: number;
  /** The rate of calls for tokens that were never accepted, for accepted ones, and for rights, each. Default: 100 per second. */
  readonly rate?: BucketLimits;
  /** The rate of calls for known tokens and rights of one user. Default: 20 per second with a burst of 120. */
  readonly userRate?: BucketLimits;
  /** Receives the cause of each failed check. */
  readonly onError: (error: unknown) => void;
}): KubernetesReviews {
  const { credentials, audiences, rate = DEFAULT_RATE, keptMs = REMEMBERED_MS, onError } = options;
  const { callMs = DEFAULT_CALL_MS } = options;
  const limits = { keptMs, most: MOST_REMEMBERED };
  const users = new ShortCache<KubernetesUser | undefined>(limits);
  const rights = new ShortCache<boolean>(limits);
  const accepted = new AcceptedTokens({ most: MOST_REMEMBERED, mostOfUser: MOST_TOKENS_OF_USER });
  const [newTokens, knownTokens, questions] = [bucket(rate), bucket(rate), bucket(rate)];
  const ofUsers = new Buckets(options.userRate ?? DEFAULT_USER_RATE, MOST_REMEMBERED);
  /** Limits the calls of one user, so that calls remain for other users. */
  const ownThen = (owner: string, take: () => boolean) => () => ofUsers.take(owner) === 0 && take();
  const client = createKubeClient({
    credentials,
    // The reviews have limits of their own, which reject calls instead of delaying them.
    gate: createLocalGate({ ratePerSecond: 1e6, burst: 1e6 }),
    userAgent: "konverge-api/1",
  });
  const ask = <T>(
    path: string,
    body: JsonObject,
    { take, schema }: { readonly take: () => boolean; readonly schema: z.ZodType<T> },
  ) => review(client, { path, body, take, schema, callMs, onError });

  const authenticate = async (token: string, id: string) => {
    const owner = accepted.ownerOf(id);
    const { status } = await ask(
      AUTHENTICATION,
      {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenReview",
        spec: { token, audiences: [...audiences] },
      },
      {
        take: owner === undefined ? newTokens : ownThen(owner, knownTokens),
        schema: tokenReviewSchema,
      },
    );
    // A server that ignores audiences lists none; its tokens may be meant for others.
    const isMeant = status.audiences.some((one) => audiences.includes(one));
    if (
      !status.authenticated ||
      !isMeant ||
      status.user === undefined ||
      status.user.username === ""
    ) {
      accepted.delete(id);
      return undefined;
    }
    accepted.add(id, ownerOf(status.user));
    return status.user;
  };
  return {
    async authenticate(token) {
      if (!FORM.test(token)) return undefined;
      const id = digest(token).toString("base64url");
      return await users.get(id, () => authenticate(token, id));
    },
    async isAllowed(user, right) {
      return await rights.get(JSON.stringify([user, right]), async () => {
        const { status } = await ask(
          AUTHORIZATION,
          {
            apiVersion: "authorization.k8s.io/v1",
            kind: "SubjectAccessReview",
            spec: accessSpec(user, right),
          },
          { take: ownThen(ownerOf(user), questions), schema: accessReviewSchema },
        );
        return status.allowed && !status.denied;
      });
    },
    close: () => client.close(),
  };
}

function ownerOf({ username, uid }: KubernetesUser): string {
  return JSON.stringify([username, uid]);
}

function accessSpec({ username, uid, groups, extra }: KubernetesUser, right: AskedRight) {
  return {
    user: username,
    groups: [...groups],
    extra: Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]])),
    ...defined({ uid }),
    resourceAttributes: { ...right },
  };
}

/** Sends a review. @throws KonvergeError `identity_unavailable`, without the message of the server */
async function review<T>(
  client: KubeClient,
  {
    path,
    body,
    take,
    schema,
    callMs,
    onError,
  }: {
    readonly path: string;
    readonly body: JsonObject;
    readonly take: () => boolean;
    readonly schema: z.ZodType<T>;
    readonly callMs: number;
    readonly onError: (error: unknown) => void;
  },
): Promise<T> {
  if (!take()) {
    const detail = "too many tokens and rights are being checked at the API server; retry later";
    throw new KonvergeError("identity_unavailable", detail, { retryAfterMs: 1_000 });
  }
  try {
    const signal = AbortSignal.timeout(callMs);
    const answer = await client.raw({ method: "POST", path, body, signal });
    return schema.parse(answer.body);
  } catch (error) {
    onError(error);
    const detail =
      "the Kubernetes API server did not check the token or the right; retry later, or see the log of the API process";
    throw new KonvergeError("identity_unavailable", detail, { cause: error, retryAfterMs: 1_000 });
  }
}

/** Returns a function that takes a token of a bucket, or returns false. */
function bucket(rate: BucketLimits): () => boolean {
  let fullAtMs = 0;
  return () => {
    const { tatMs, waitMs } = takeToken(rate, fullAtMs, performance.now());
    if (waitMs > 0) return false;
    fullAtMs = tatMs;
    return true;
  };
}
