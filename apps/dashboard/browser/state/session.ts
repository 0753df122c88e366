import type { Role } from "@konverge/contracts";
import { signal } from "@preact/signals";

/** As apps/api writes it into the page; empty for who has yet to log in. */
interface Context {
  readonly cluster?: string;
  readonly role?: Role;
  readonly name?: string;
}

const content = document.querySelector('meta[name="konverge"]')?.getAttribute("content") ?? "{}";
const context = JSON.parse(content) as Context;

export const defaultCluster: string = context.cluster ?? "default";

/** Also set by the first answer that asks for a token, such as after it has expired. */
export const needsLogin = signal(context.role === undefined);

/** Viewers see no buttons that they could not use. */
export const mayOperate: boolean = context.role !== "viewer";

/** The name of the token, which is the author of every order; undefined over loopback without one. */
export const callerName: string | undefined = context.name;

const AUTHOR = "konverge.author";

/** Who gives the orders, as the person last wrote it. */
export function readAuthor(): string {
  return callerName ?? window.localStorage.getItem(AUTHOR) ?? "";
}
export function keepAuthor(author: string): void {
  window.localStorage.setItem(AUTHOR, author);
}
