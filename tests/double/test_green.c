/* SPDX-License-Identifier: Apache-2.0 */
#include "test_green_support.h"
int main(void)
{
    return 0;
}
