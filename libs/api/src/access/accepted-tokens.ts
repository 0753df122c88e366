/** Digests of tokens that were accepted, with their users. A user displaces only tokens of its own. */
export class AcceptedTokens {
  readonly #limits: { readonly most: number; readonly mostOfUser: number };
  readonly #owners = new Map<string, string>();
  readonly #tokens = new Map<string, Set<string>>();

  constructor(limits: { readonly most: number; readonly mostOfUser: number }) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#owners.size;
  }

  ownerOf(id: string): string | undefined {
    return this.#owners.get(id);
  }

  add(id: string, owner: string): void {
    this.delete(id);
    const own = this.#tokens.get(owner) ?? new Set();
    const [oldest] = own.size >= this.#limits.mostOfUser ? own : this.#full();
    if (oldest !== undefined) this.delete(oldest);
    this.#tokens.set(owner, own.add(id));
    this.#owners.set(id, owner);
  }

  delete(id: string): void {
    const owner = this.#owners.get(id);
    if (owner === undefined) return;
    this.#owners.delete(id);
    const own = this.#tokens.get(owner);
    own?.delete(id);
    if (own?.size === 0) this.#tokens.delete(owner);
  }

  #full(): Iterable<string> {
    return this.#owners.size >= this.#limits.most ? this.#owners.keys() : [];
  }
}
