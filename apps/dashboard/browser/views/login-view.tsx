import { useState } from "preact/hooks";
import { call, CallError, type Trouble } from "../api/call.ts";
import { TroubleNote } from "../parts/notice.tsx";

/** Changes a token for a cookie that scripts cannot read. */
export function LoginView() {
  const [trouble, setTrouble] = useState<Trouble>();
  const submit = async (form: HTMLFormElement) => {
    const token = new FormData(form).get("token");
    try {
      await call("v1/session", { method: "POST", body: { token } });
      // The page is another one for who is known.
      window.location.reload();
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      setTrouble(
        error.trouble.code === "unauthorized"
          ? {
              ...error.trouble,
              title: "This token is not known",
              detail: "It may have been revoked, or have expired.",
            }
          : error.trouble,
      );
    }
  };
  return (
    <main class="login" id="main">
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault();
          void submit(event.currentTarget);
        }}
      >
        <h1>Konverge</h1>
        <label>
          Token
          <input name="token" type="password" required autoComplete="current-password" autoFocus />
        </label>
        <TroubleNote trouble={trouble} />
        <button type="submit" class="primary">
          Log in
        </button>
        <p class="dim">
          An admin makes one: <code>konverge token create</code>
        </p>
      </form>
    </main>
  );
}
