/* SPDX-License-Identifier: Apache-2.0 */
#include "common/childenv.h"

#include <stddef.h>
#include <string.h>

const char *const childenv_secret_prefixes[] = {
	"APPROVAL_", "TELEGRAM_", "VAULT_", "AGENTMAIL_", NULL,
};

const char *const childenv_open_names[] = {
	"APPROVAL_HUMAN",
	"APPROVAL_AGENT",
	"APPROVAL_ASCII",
	"APPROVAL_MD",
	"APPROVAL_HOME",
	"APPROVAL_DIR",
	NULL,
};

bool childenv_is_secret(const char *name)
{
	for (size_t i = 0; childenv_open_names[i]; i++)
		if (strcmp(name, childenv_open_names[i]) == 0)
			return false;
	for (size_t i = 0; childenv_secret_prefixes[i]; i++) {
		size_t size = strlen(childenv_secret_prefixes[i]);

		if (strncmp(name, childenv_secret_prefixes[i], size) == 0 && name[size] != '\0')
			return true;
	}
	return false;
}

enum childenv_fate childenv_decide(const struct childenv_rules *rules, const char *name)
{
	bool secret =
		childenv_is_secret(name) || (rules->passphrase && rules->passphrase[0] != '\0' &&
					     strcmp(name, rules->passphrase) == 0);

	if (!secret)
		return CHILDENV_KEEP;
	return rules->declared && string_list_has(rules->declared, name) ? CHILDENV_PASS
									 : CHILDENV_STRIP;
}
