//! One client connection: reads requests, has them carried out, writes replies.
