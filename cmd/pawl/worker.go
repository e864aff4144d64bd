package main
import "github.com/spf13/cobra"
func (a *app) workerCommand() *cobra.Command { return &cobra.Command{Use:"worker"} }
func (a *app) doctorCommand() *cobra.Command { return &cobra.Command{Use:"doctor"} }
