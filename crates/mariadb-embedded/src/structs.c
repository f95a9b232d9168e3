/* What needs the layout of the library's structs; everything else is declared in ffi.rs. */

#include <mysql.h>
#include <stdlib.h>
#include <string.h>

/* A parameter as Rust hands it over: type, and where the value lies. */
typedef struct
{
  const void *value;
  unsigned long length;
  unsigned int type;
  unsigned int is_unsigned;
} embedded_param;

enum { FEW = 16 };

static int bind(MYSQL_STMT *statement, const embedded_param *params, unsigned int count)
{
  MYSQL_BIND few[FEW], *binds= few;
  int failed;
  if (count > FEW && !(binds= malloc(count * sizeof(*binds))))
    return 1;
  memset(binds, 0, count * sizeof(*binds));
  for (unsigned int i= 0; i < count; i++)
  {
    binds[i].buffer_type= (enum enum_field_types) params[i].type;
    binds[i].buffer= (void *) params[i].value;
    binds[i].buffer_length= params[i].length;
    binds[i].is_unsigned= (my_bool) params[i].is_unsigned;
  }
  /* The statement keeps a copy of the structs; what they point to is read in the execution. */
  failed= mysql_stmt_bind_param(statement, binds);
  if (binds != few)
    free(binds);
  return failed;
}

/* Executes, and fetches the whole result. Non-zero: the statement's error says why not. */
int embedded_execute(MYSQL_STMT *statement, const embedded_param *params, unsigned int count)
{
  if (count && bind(statement, params, count))
    return 1;
  if (mysql_stmt_execute(statement))
    return 1;
  return statement->field_count ? mysql_stmt_store_result(statement) : 0;
}

/* The rows of the result, which lie there as the binary protocol has them, but for the first byte (0). */
const MYSQL_ROWS *embedded_first_row(const MYSQL_STMT *statement)
{
  return statement->result.data;
}

const MYSQL_ROWS *embedded_next_row(const MYSQL_ROWS *row)
{
  return row->next;
}

/* The row's bytes; the length counts the first byte that is missing. */
const unsigned char *embedded_row(const MYSQL_ROWS *row, unsigned long *length)
{
  *length= row->length;
  return (const unsigned char *) row->data;
}

unsigned char embedded_column_type(const MYSQL_STMT *statement, unsigned int column)
{
  return (unsigned char) statement->fields[column].type;
}

unsigned char embedded_text_column_type(MYSQL_RES *result, unsigned int column)
{
  return (unsigned char) mysql_fetch_field_direct(result, column)->type;
}

unsigned int embedded_status(const MYSQL *connection)
{
  return connection->server_status;
}

/* Opens a connection inside of the library; on failure there is none, and the error is written out. */
MYSQL *embedded_connect(unsigned int *code, char *message, unsigned long room)
{
  MYSQL *connection= mysql_init(NULL);
  if (!connection)
  {
    *code= 2008;
    strncpy(message, "out of memory", room);
    return NULL;
  }
  mysql_options(connection, MYSQL_OPT_USE_EMBEDDED_CONNECTION, NULL);
  mysql_options(connection, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  if (mysql_real_connect(connection, NULL, "root", NULL, NULL, 0, NULL, CLIENT_FOUND_ROWS))
    return connection;
  *code= mysql_errno(connection);
  strncpy(message, mysql_error(connection), room - 1);
  mysql_close(connection);
  return NULL;
}

/* Starts the server with the options of these groups of the options file. */
int embedded_start(int count, char **arguments)
{
  static char *groups[]= {(char *) "server", (char *) "embedded", NULL};
  return mysql_server_init(count, arguments, groups);
}
