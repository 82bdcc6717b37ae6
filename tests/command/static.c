/* SPDX-License-Identifier: Apache-2.0 */

/* A program that no loader starts. */

int main(void)
{
    return 0;
}
