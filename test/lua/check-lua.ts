import luaparse from "luaparse";

/** The globals that Redis provides to scripts. */
const GLOBALS: ReadonlySet<string> = new Set(
  "KEYS ARGV redis cjson cmsgpack string table math error ipairs next pairs pcall select tonumber tostring type unpack".split(
    " ",
  ),
);

/** A local variable or function. */
interface LuaLocal {
  readonly name: string;
  readonly line: number;
  used: boolean;
}

export interface LuaFacts {
  /** Names of globals that are assigned, or read and unknown to Redis, by line. */
  readonly strayGlobals: readonly { readonly name: string; readonly line: number }[];
  /** Whether KEYS or ARGV are read. */
  readonly readsInputs: boolean;
  /** Variables declared by `local`, without parameters and loop variables. */
  readonly locals: readonly LuaLocal[];
  /** Names after a dot. */
  readonly members: ReadonlySet<string>;
}

type Node = luaparse.Node | luaparse.Statement | luaparse.Expression;
type Block = readonly luaparse.Statement[];

/** Parses Lua 5.1 as Redis does, and resolves its names. @throws SyntaxError with the line */
export function checkLua(text: string): LuaFacts {
  const chunk = luaparse.parse(text, { luaVersion: "5.1", locations: true });
  const resolver = new Resolver();
  resolver.block(chunk.body);
  return resolver;
}

class Resolver implements LuaFacts {
  readonly strayGlobals: { name: string; line: number }[] = [];
  readonly locals: LuaLocal[] = [];
  readonly members = new Set<string>();
  readsInputs = false;
  readonly #scopes: Map<string, LuaLocal>[] = [];

  block(body: Block, names: readonly luaparse.Identifier[] = []): void {
    this.#inScope(() => {
      for (const name of names) this.#declare(name);
      for (const statement of body) this.#statement(statement);
    });
  }

  #inScope(work: () => void): void {
    this.#scopes.push(new Map());
    work();
    this.#scopes.pop();
  }

  #declare(identifier: luaparse.Identifier, isListed = false): void {
    const local = { name: identifier.name, line: lineOf(identifier), used: false };
    if (isListed) this.locals.push(local);
    this.#scopes.at(-1)?.set(identifier.name, local);
  }

  #read(identifier: luaparse.Identifier): void {
    const local = this.#find(identifier.name);
    if (local !== undefined) local.used = true;
    else if (!GLOBALS.has(identifier.name)) this.#addStray(identifier);
    else if (identifier.name === "KEYS" || identifier.name === "ARGV") this.readsInputs = true;
  }

  #find(name: string): LuaLocal | undefined {
    return this.#scopes.findLast((scope) => scope.has(name))?.get(name);
  }

  #addStray(identifier: luaparse.Identifier): void {
    this.strayGlobals.push({ name: identifier.name, line: lineOf(identifier) });
  }

  #statement(node: luaparse.Statement): void {
    switch (node.type) {
      case "LocalStatement":
        this.#all(node.init);
        for (const variable of node.variables) this.#declare(variable, true);
        return;
      case "AssignmentStatement":
        this.#all(node.init);
        for (const variable of node.variables) this.#assign(variable);
        return;
      case "FunctionDeclaration":
        this.#function(node);
        return;
      case "ForNumericStatement":
        this.#all([node.start, node.end, node.step]);
        this.block(node.body, [node.variable]);
        return;
      case "ForGenericStatement":
        this.#all(node.iterators);
        this.block(node.body, node.variables);
        return;
      case "RepeatStatement":
        this.#inScope(() => {
          for (const each of node.body) this.#statement(each);
          this.#expression(node.condition);
        });
        return;
      case "WhileStatement":
        this.#expression(node.condition);
        this.block(node.body);
        return;
      case "DoStatement":
        this.block(node.body);
        return;
      case "IfStatement":
        for (const clause of node.clauses) {
          if (clause.type !== "ElseClause") this.#expression(clause.condition);
          this.block(clause.body);
        }
        return;
      case "ReturnStatement":
        this.#all(node.arguments);
        return;
      case "CallStatement":
        this.#expression(node.expression);
        return;
      default:
        return;
    }
  }

  #function(node: luaparse.FunctionDeclaration): void {
    const { identifier, parameters } = node;
    // A local function may call itself; anything else is an assignment.
    if (identifier?.type === "Identifier" && node.isLocal) this.#declare(identifier, true);
    else if (identifier !== null) this.#assign(identifier);
    const names = parameters.filter((each) => each.type === "Identifier");
    this.block(node.body, names);
  }

  #assign(variable: Node): void {
    if (variable.type !== "Identifier") this.#expression(variable);
    else if (this.#find(variable.name) === undefined) this.#addStray(variable);
  }

  #all(nodes: readonly (Node | null)[]): void {
    for (const node of nodes) if (node !== null) this.#expression(node);
  }

  #expression(node: Node): void {
    switch (node.type) {
      case "Identifier":
        this.#read(node);
        return;
      case "FunctionDeclaration":
        this.#function(node);
        return;
      case "MemberExpression":
        this.members.add(node.identifier.name);
        this.#expression(node.base);
        return;
      case "IndexExpression":
        this.#all([node.base, node.index]);
        return;
      case "CallExpression":
        this.#all([node.base, ...node.arguments]);
        return;
      case "TableCallExpression":
        this.#all([node.base, node.arguments]);
        return;
      case "StringCallExpression":
        this.#expression(node.base);
        return;
      case "BinaryExpression":
      case "LogicalExpression":
        this.#all([node.left, node.right]);
        return;
      case "UnaryExpression":
        this.#expression(node.argument);
        return;
      case "TableConstructorExpression":
        for (const field of node.fields) {
          if (field.type === "TableKey") this.#expression(field.key);
          this.#expression(field.value);
        }
        return;
      default:
        return;
    }
  }
}

function lineOf(node: luaparse.Identifier): number {
  return node.loc?.start.line ?? 0;
}
