// Kubernetes' own cloud-controller-manager for AWS with the controllers of Nodes alone: provider-aws makes neither
// load balancers nor routes, so that no other right in the account is needed (docs/operate/provider-aws.md).
package main

import (
	"os"

	// Trusted authorities for an image that has none.
	_ "golang.org/x/crypto/x509roots/fallback"
	cloudprovider "k8s.io/cloud-provider"
	aws "k8s.io/cloud-provider-aws/pkg/providers/v1"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"
)

func main() {
	opts, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		klog.Fatalf("cannot build the options: %v", err)
	}
	controllers := map[string]app.ControllerInitFuncConstructor{}
	for _, name := range []string{names.CloudNodeController, names.CloudNodeLifecycleController} {
		controllers[name] = app.DefaultInitFuncConstructors[name]
	}
	command := app.NewCloudControllerManagerCommand(
		opts, cloud, controllers, names.CCMControllerAliases(), flag.NamedFlagSets{}, nil)
	os.Exit(cli.Run(command))
}

// cloud opens the account that the cloud configuration and the environment name.
func cloud(config *config.CompletedConfig) cloudprovider.Interface {
	file := config.ComponentConfig.KubeCloudShared.CloudProvider.CloudConfigFile
	cloud, err := cloudprovider.InitCloudProvider(aws.ProviderName, file)
	if err != nil {
		klog.Fatalf("cannot open the cloud provider with %s: %v", file, err)
	}
	if cloud == nil || !cloud.HasClusterID() {
		klog.Fatalf("%s names no cluster: set KubernetesClusterID", file)
	}
	return cloud
}
