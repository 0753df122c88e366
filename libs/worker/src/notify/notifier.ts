import { randomUUID } from "node:crypto";
import { defined, ensureError, type Fault } from "@konverge/core";
import type { Log } from "@konverge/engine";
import type { NotificationRecord, NotificationStore } from "@konverge/queue";
import type { NotificationMetrics } from "@konverge/telemetry";
import { formatNotification, type NotificationPlace } from "./format-notification.ts";
import { subscriptionOf, timesOf, type NotifyRule } from "./notify-options.ts";
import {
  changesOf,
  isReported,
  limitChanges,
  planNotification,
  toldAfter,
  type ObservedFaults,
} from "./plan-notification.ts";
import { sendWebhook, type SendResult } from "./send-webhook.ts";

export interface NotifierOptions {
  readonly rules: readonly NotifyRule[];
  readonly store: NotificationStore;
  /** Reads the current faults. */
  readonly observe: () => Promise<ObservedFaults>;
  readonly place: NotificationPlace;
  readonly env: NodeJS.ProcessEnv;
  readonly log: Log;
  readonly metrics: NotificationMetrics;
  /** Time between two observations, in ms. Default 5,000. */
  readonly everyMs?: number;
  /** The delay after the first failed try, in ms, which doubles up to 5 minutes. Default 1,000. */
  readonly retryMs?: number;
  /** Time after which another process leads if this one stops without a notice. Default 20,000. */
  readonly leaseMs?: number;
}

const DEFAULT_EVERY_MS = 5_000;
const DEFAULT_RETRY_MS = 1_000;
const DEFAULT_LEASE_MS = 20_000;
const MAX_RETRY_MS = 300_000;
const LAST_TRIES = 5;

/**
 * Notifies receivers of faults. A subscription is a receiver with its events. The process that leads it compares the
 * current faults with those that the receiver was notified of, so that a restart neither loses nor repeats one. A
 * receiver has at most one undelivered message; later changes are in the next one.
 */
export class Notifier {
  readonly #options: NotifierOptions;
  /** Unique among all processes and starts. */
  readonly #process = randomUUID();
  readonly #ending = new AbortController();
  /** The faults that receivers were notified of, by subscription, while this process leads it. */
  readonly #told = new Map<string, Map<string, Fault>>();
  /** Running steps, by subscription. */
  readonly #steps = new Map<string, Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #turn: Promise<void> | undefined;
  #waiting: readonly NotificationRecord[] = [];
  readonly #unobserve: () => void;

  constructor(options: NotifierOptions) {
    this.#options = options;
    const { rules, metrics, everyMs = DEFAULT_EVERY_MS } = options;
    this.#unobserve = metrics.observeNotifications(
      rules.map(({ to }) => to.name),
      () =>
        this.#waiting.map(({ receiver, createdAtMs, tries }) => ({
          receiver,
          failingSinceMs: tries > 0 ? createdAtMs : undefined,
        })),
    );
    this.#timer = setInterval(() => this.#start(), everyMs);
    this.#start();
  }

  /** Ends running tries, whose messages another process sends again, and lets it lead at once. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#ending.abort();
    await this.#turn;
    await Promise.all(this.#steps.values());
    this.#unobserve();
    try {
      const { rules, store } = this.#options;
      await Promise.all(rules.map((rule) => store.resign(subscriptionOf(rule), this.#process)));
    } catch (error) {
      this.#options.log.debug({ err: ensureError(error) }, "notification leadership not resigned");
    }
  }

  #start(): void {
    this.#turn ??= this.#look()
      .catch((error: unknown) => {
        this.#options.log.warn({ err: ensureError(error) }, "notifications delayed");
      })
      .finally(() => {
        this.#turn = undefined;
      });
  }

  async #look(): Promise<void> {
    const { store, rules, observe, leaseMs = DEFAULT_LEASE_MS } = this.#options;
    const led = new Map<string, NotifyRule>();
    for (const rule of rules) {
      const subscription = subscriptionOf(rule);
      const lead = await store.lead(subscription, this.#process, leaseMs);
      if (lead !== "kept") this.#told.delete(subscription);
      if (lead !== "other") led.set(subscription, rule);
    }
    const undelivered = await store.waiting();
    this.#waiting = undelivered.filter(({ subscription }) => led.has(subscription));
    await this.#endUnknown(undelivered);
    if (led.size === 0) return;
    // Faults that are read now may be older than the end of a step that runs now.
    const idle = [...led].filter(([subscription]) => !this.#steps.has(subscription));
    const observed = await observe();
    // A step that has ended since may have changed its message.
    const waiting = await store.waiting();
    for (const [subscription, rule] of idle) {
      if (this.#ending.signal.aborted) return;
      const message = waiting.find((each) => each.subscription === subscription);
      // A slow receiver does not delay the others.
      const step = (
        message === undefined ? this.#compose(rule, observed) : this.#send(rule, message)
      )
        .catch((error: unknown) => {
          this.#told.delete(subscription);
          const fields = { err: ensureError(error), receiver: rule.to.name };
          this.#options.log.warn(fields, "notifications delayed");
        })
        .finally(() => this.#steps.delete(subscription));
      this.#steps.set(subscription, step);
    }
  }

  async #compose(rule: NotifyRule, observed: ObservedFaults): Promise<void> {
    const { store } = this.#options;
    const { to: receiver, on } = rule;
    const subscription = subscriptionOf(rule);
    const told = this.#told.get(subscription) ?? (await store.told(subscription));
    this.#told.set(subscription, told);
    const changes = limitChanges(receiver.format, changesOf(on, observed, told));
    if (changes.firing.size + changes.resolved.size === 0) {
      await store.closeGroup(subscription);
      return;
    }
    const nowMs = Date.now();
    const { groupMs, deadlineMs } = timesOf(rule);
    let message: NotificationRecord | undefined;
    if (isReported(receiver.format, changes)) {
      const startMs = await store.openGroup(subscription, nowMs);
      if (nowMs - startMs < groupMs) return;
      message = planNotification(
        { name: receiver.name, format: receiver.format, subscription },
        changes,
        { told, nowMs, deadlineMs },
      );
    }
    const isStored = await store.compose(this.#process, {
      subscription,
      changes: new Map([
        ...changes.firing,
        ...[...changes.resolved.keys()].map((id) => [id, undefined] as const),
      ]),
      ...defined({ message }),
    });
    if (!isStored) {
      this.#told.delete(subscription);
      return;
    }
    this.#told.set(subscription, toldAfter(told, changes));
    if (message !== undefined) await this.#send(rule, message);
  }

  async #send({ to: receiver }: NotifyRule, message: NotificationRecord): Promise<void> {
    const { env, place, store, log, metrics } = this.#options;
    const nowMs = Date.now();
    if (nowMs < (message.nextAtMs ?? 0) && nowMs < message.deadlineMs) return;
    const result: SendResult =
      nowMs >= message.deadlineMs
        ? { end: "failed", error: "deadline passed" }
        : await sendWebhook(receiver, message, {
            body: formatNotification(message, place),
            env,
            signal: this.#ending.signal,
          });
    // A try that the shutdown ended is repeated by another process.
    if (this.#ending.signal.aborted && result.end !== "sent") return;
    const tried = this.#tried(message, result);
    if (!(await store.record(this.#process, tried))) {
      this.#told.delete(message.subscription);
      return;
    }
    this.#waiting = [
      ...this.#waiting.filter(({ subscription }) => subscription !== message.subscription),
      ...(tried.state === "waiting" ? [tried] : []),
    ];
    const { id } = message;
    const { status, error } = result;
    const fields = { notification: id, receiver: receiver.name, status, error };
    if (result.end === "again") {
      if (message.tries === 0) log.warn(fields, "notification not delivered, retrying");
      return;
    }
    metrics.notificationEnded(receiver.name, result.end);
    if (result.end === "sent") log.info(fields, "notification sent");
    else log.error(fields, "notification failed");
  }

  #tried(
    message: NotificationRecord,
    { end, retryAfterMs, ...answer }: SendResult,
  ): NotificationRecord {
    const { retryMs = DEFAULT_RETRY_MS } = this.#options;
    const atMs = Date.now();
    const { nextAtMs: _, ...rest } = message;
    const tries = message.tries + 1;
    const lastTries = [...message.lastTries, { atMs, ...answer }].slice(-LAST_TRIES);
    if (end !== "again") return { ...rest, state: end, tries, lastTries, endedAtMs: atMs };
    const backoffMs = Math.min(MAX_RETRY_MS, retryMs * 2 ** Math.min(message.tries, 20));
    const delayMs = Math.max(backoffMs * (0.75 + Math.random() / 2), retryAfterMs ?? 0);
    // The last try is at the deadline.
    const nextAtMs = Math.min(Math.round(atMs + delayMs), message.deadlineMs);
    return { ...rest, state: "waiting", tries, lastTries, nextAtMs };
  }

  /** Ends messages to receivers that the configuration no longer has. */
  async #endUnknown(waiting: readonly NotificationRecord[]): Promise<void> {
    const { rules, store, leaseMs = DEFAULT_LEASE_MS } = this.#options;
    const known = new Set(rules.map(subscriptionOf));
    for (const message of waiting) {
      // Until the deadline, a worker with another configuration may send it.
      if (known.has(message.subscription) || Date.now() < message.deadlineMs) continue;
      const lead = await store.lead(message.subscription, this.#process, leaseMs);
      if (lead === "other") continue;
      const result: SendResult = { end: "failed", error: "the configuration has no such receiver" };
      await store.record(this.#process, this.#tried(message, result));
      await store.resign(message.subscription, this.#process);
    }
  }
}
