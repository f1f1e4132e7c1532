import createClient from "openapi-fetch";

import type { components, paths } from "./schema.js";

type User = components["schemas"]["UserRecord"];

export function usersOf(baseUrl: string, token: string) {
  return createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });
}

export async function nameOf(api: ReturnType<typeof usersOf>, id: number): Promise<string> {
  const { data, error, response } = await api.GET("/users/{id}", { params: { path: { id: String(id) } } });
  if (data) {
    const user: User = data;
    return user.name;
  }
  // The bodies of all declared errors have a text.
  return `${response.status}: ${error.error}`;
}

export async function signUp(api: ReturnType<typeof usersOf>, name: string, email: string): Promise<number> {
  const { data, error } = await api.POST("/users", { body: { name, email } });
  if (data) {
    return data.id;
  }
  if (error.error === "Conflict") {
    throw new Error(`${email} has signed up before`);
  }
  throw new Error(error.error);
}
