import { createClient } from "./client/client/index.js";
import { createUser, getUser } from "./client/index.js";
import type { GetUserErrors } from "./client/index.js";

export function usersOf(baseUrl: string, token: string) {
  // A token is sent where the document says that a route takes one.
  return createClient({ baseUrl, auth: token });
}

export async function nameOf(client: ReturnType<typeof usersOf>, id: number): Promise<string> {
  const { data, error, response } = await getUser({ client, path: { id: String(id) } });
  if (data) {
    return data.name;
  }
  const told: GetUserErrors[keyof GetUserErrors] = error;
  return `${response?.status}: ${told.error}`;
}

export async function signUp(client: ReturnType<typeof usersOf>, name: string, email: string): Promise<number> {
  const { data } = await createUser({ client, body: { name, email }, throwOnError: true });
  return data.id;
}
