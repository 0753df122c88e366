import type { Role } from "@konverge/contracts";
import { signal } from "@preact/signals";

/** The context that the API writes into the page; before login, only `signIn`. */
interface Context {
  readonly cluster?: string;
  readonly role?: Role;
  readonly name?: string;
  readonly isSignedIn?: boolean;
  readonly signIn?: string;
}

const content = document.querySelector('meta[name="konverge"]')?.getAttribute("content") ?? "{}";
const context = JSON.parse(content) as Context;

export const defaultCluster: string = context.cluster ?? "default";

/** Also set by a response that requires a token, for example after expiry. */
export const needsLogin = signal(context.role === undefined);

/** Viewers see no action buttons. */
export const mayOperate: boolean = context.role !== "viewer";

/** Only admins read the audit log. */
export const isAdmin: boolean = context.role === undefined || context.role === "admin";

/** The token's name, which is the author of every action; undefined on loopback without a token. */
export const callerName: string | undefined = context.name;

/** The name of the OIDC provider with which users can log in. */
export const signInProvider: string | undefined = context.signIn;

/** The name of a user who logged in with the provider. */
export const signedInUser: string | undefined =
  context.isSignedIn === true ? context.name?.replace(/^oidc:/, "") : undefined;

const AUTHOR = "konverge.author";

/** Returns the author of actions: the token's name, else the last name entered. */
export function readAuthor(): string {
  return callerName ?? window.localStorage.getItem(AUTHOR) ?? "";
}
export function keepAuthor(author: string): void {
  window.localStorage.setItem(AUTHOR, author);
}
