/* SPDX-License-Identifier: Apache-2.0 */
#include "common/plan_check.h"

#include "tests/test.h"

int main(void)
{
	return 0;
}
