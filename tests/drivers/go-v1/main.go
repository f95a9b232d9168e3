// Logs in as each line of the input says, through version 1 of MongoDB's driver for Go. A line is a
// URI. The outcome is a line, too: "user NAME", or "error CODE".
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/mongo"
	"go.mongodb.org/mongo-driver/mongo/options"
	"go.mongodb.org/mongo-driver/x/mongo/driver"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fmt.Println(outcome(lines.Text()))
	}
}

func outcome(uri string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	client, err := mongo.Connect(ctx, options.Client().ApplyURI(uri))
	if err != nil {
		return describe(err)
	}
	defer client.Disconnect(ctx)
	found := client.Database("test").RunCommand(ctx, bson.D{{Key: "find", Value: "c"}})
	if found.Err() != nil {
		return describe(found.Err())
	}
	var status struct {
		AuthInfo struct {
			AuthenticatedUsers []struct{ User string }
		} `bson:"authInfo"`
	}
	if err := client.Database("test").RunCommand(ctx, bson.D{{Key: "connectionStatus", Value: 1}}).Decode(&status); err != nil {
		return describe(err)
	}
	return "user " + status.AuthInfo.AuthenticatedUsers[0].User
}

// A failed login is an error of the driver's core, that of a command is one of its interface.
func describe(err error) string {
	var inner driver.Error
	var command mongo.CommandError
	if errors.As(err, &inner) {
		return fmt.Sprintf("error %d", inner.Code)
	}
	if errors.As(err, &command) {
		return fmt.Sprintf("error %d", command.Code)
	}
	return "error: " + err.Error()
}
