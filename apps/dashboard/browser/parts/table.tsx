import type { ComponentChildren } from "preact";

/** A column: header, label on narrow windows, and cells come from one definition. */
export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Classes of the cells. `right` also aligns the header. */
  readonly look?: string;
  /** Hides the title, but not from screen readers. */
  readonly isTitleHidden?: boolean;
}

export interface RowGroup<Row> {
  readonly key: string;
  readonly head: ComponentChildren;
  readonly rows: readonly Row[];
}

export interface TableProps<Row> {
  /** The first column is the header of its row. */
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** Rows under a common header, instead of `rows`. */
  readonly groups?: readonly RowGroup<Row>[];
  readonly keyOf: (row: Row) => string | number;
  /** For screen readers. */
  readonly caption?: string;
  /** Classes of the table. Default: cells are stacked on narrow windows. */
  readonly look?: string;
}

export function Table<Row>(props: TableProps<Row>) {
  const { columns, rows, groups, keyOf, caption, look = "stack" } = props;
  return (
    <table class={look}>
      {caption === undefined ? null : <caption class="hidden">{caption}</caption>}
      <thead>
        <tr>
          {columns.map((column) => (
            <ColumnHead key={column.title} column={column} />
          ))}
        </tr>
      </thead>
      {groups === undefined ? (
        <tbody>
          <Rows columns={columns} rows={rows} keyOf={keyOf} />
        </tbody>
      ) : (
        groups.map((group) => (
          <tbody key={group.key}>
            <tr class="group">
              <th scope="rowgroup" colSpan={columns.length}>
                {group.head}
              </th>
            </tr>
            <Rows columns={columns} rows={group.rows} keyOf={keyOf} />
          </tbody>
        ))
      )}
    </table>
  );
}

function Rows<Row>({
  columns: [head, ...others],
  rows,
  keyOf,
}: Pick<TableProps<Row>, "columns" | "rows" | "keyOf">) {
  return (
    <>
      {rows.map((row) => (
        <tr key={keyOf(row)}>
          <th scope="row" class={head?.look}>
            {head?.cell(row)}
          </th>
          {others.map(({ title, cell, look, isTitleHidden = false }) => (
            <td key={title} class={look} data-label={isTitleHidden ? undefined : title}>
              {cell(row)}
            </td>
          ))}
        </tr>
      ))}
    </>
  );
}

function ColumnHead<Row>({ column }: { readonly column: Column<Row> }) {
  const { title, look = "", isTitleHidden = false } = column;
  return (
    <th scope="col" class={headLook(look)}>
      {isTitleHidden ? <span class="hidden">{title}</span> : title}
    </th>
  );
}

/** Alignment and priority of a column apply to its header, too. */
function headLook(look: string): string | undefined {
  const shared = look.split(" ").filter((name) => name === "right" || name === "secondary");
  return shared.length === 0 ? undefined : shared.join(" ");
}
