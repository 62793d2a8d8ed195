/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the table of configuration keys, for defaults.py. */
#include "common/hostconf.h"

#include <stdio.h>

int main(void)
{
	size_t count = 0;
	const struct hostconf_key *keys = hostconf_keys(&count);

	for (size_t i = 0; i < count; i++)
		if (printf("%s\t%s\t%s\n", keys[i].key, keys[i].form, keys[i].default_value) < 0)
			return 1;
	return 0;
}
