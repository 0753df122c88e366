import { useState } from "preact/hooks";
import { call, CallError, type Trouble } from "../api/call.ts";
import { TroubleNote } from "../parts/notice.tsx";
import { signInProvider } from "../state/session.ts";

/** Exchanges a token for a cookie that scripts cannot read. */
export function LoginView() {
  const [trouble, setTrouble] = useState<Trouble>();
  const submit = async (form: HTMLFormElement) => {
    const token = new FormData(form).get("token");
    try {
      await call("v1/session", { method: "POST", body: { token } });
      // The server renders another context after login.
      window.location.reload();
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      setTrouble(
        error.trouble.code === "unauthorized"
          ? {
              ...error.trouble,
              title: "Invalid token",
              detail: "The token is unknown, revoked or expired.",
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
        {signInProvider === undefined ? null : (
          <>
            <button type="button" class="primary" onClick={signIn}>
              Sign in with {signInProvider}
            </button>
            <p class="dim">or with a token</p>
          </>
        )}
        <label>
          Token
          <input
            name="token"
            type="password"
            required
            autoComplete="current-password"
            autoFocus={signInProvider === undefined}
          />
        </label>
        <TroubleNote trouble={trouble} />
        <button type="submit" class={signInProvider === undefined ? "primary" : undefined}>
          Log in
        </button>
        <p class="dim">
          Admins create tokens with <code>konverge token create</code>
        </p>
      </form>
    </main>
  );
}

/** The provider returns the browser to the current page. */
function signIn(): void {
  const url = new URL("auth/login", document.baseURI);
  url.searchParams.set("returnTo", window.location.href);
  window.location.assign(url);
}
